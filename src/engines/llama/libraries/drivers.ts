import { existsSync, readFileSync } from "node:fs";
import type { Koffi, Pointer } from "../process/c-api/structs.ts";
import type { Backend } from "./builds.ts";

/** What a backend finds on this machine. */
export interface Driver {
  /** The backend can compute here. */
  readonly fits: boolean;
  /** Why: the device, with the version of its driver, or what is missing. */
  readonly why: string;
}

/** Asks the driver of a backend for its devices. A driver may end the process. */
export function findDriver(koffi: Koffi, backend: Backend): Driver {
  try {
    if (backend === "cuda") return cudaDriver(koffi);
    if (backend === "vulkan") return vulkanDriver(koffi, process.env["GGML_VK_VISIBLE_DEVICES"] !== undefined);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : String(error);
    return { fits: false, why: `${backend === "cuda" ? "NVIDIA's driver" : "Vulkan"} does not start: ${reason}` };
  }
  return { fits: true, why: backend === "metal" ? "Apple's GPU" : "any processor" };
}

function loaded(koffi: Koffi, library: string): ReturnType<Koffi["load"]> | undefined {
  try {
    return koffi.load(library);
  } catch {
    return undefined;
  }
}

/** Source: CUDA Driver API, cuInit to cuDeviceGetName. */
function cudaDriver(koffi: Koffi): Driver {
  const cuda = loaded(koffi, process.platform === "win32" ? "nvcuda.dll" : "libcuda.so.1");
  if (!cuda) return { fits: false, why: "no driver of NVIDIA is installed" };
  const call = (name: string, types: readonly string[], ...values: readonly unknown[]): void => {
    const code = cuda.func(name, "int", [...types])(...values) as number;
    if (code !== 0) throw new Error(`${name}: error ${code}`);
  };
  const number = new Int32Array(1);
  call("cuInit", ["uint"], 0);
  call("cuDriverGetVersion", ["void *"], number);
  const version = `${Math.floor((number[0] ?? 0) / 1000)}.${((number[0] ?? 0) % 1000) / 10}`;
  call("cuDeviceGetCount", ["void *"], number);
  if (number[0] === 0) return { fits: false, why: `the driver of CUDA ${version} finds no GPU` };
  call("cuDeviceGet", ["void *", "int"], number, 0);
  const name = new Uint8Array(256);
  call("cuDeviceGetName", ["void *", "int", "int"], name, name.length, number[0]);
  return { fits: true, why: `${text(name)}, with a driver for CUDA ${version}` };
}

/** `VkPhysicalDeviceType`, of which llama.cpp uses the first two unless GGML_VK_VISIBLE_DEVICES names devices (ggml-vulkan.cpp). */
const deviceTypes = { integrated: 1, discrete: 2 } as const;
/** What ggml-vulkan.cpp requires. */
const minVulkan = [1, 2] as const;

/** Source: Vulkan 1.3, vkCreateInstance to vkGetPhysicalDeviceProperties. `all`: devices of every type may be used. */
function vulkanDriver(koffi: Koffi, all: boolean): Driver {
  const vulkan = loaded(koffi, process.platform === "win32" ? "vulkan-1.dll" : "libvulkan.so.1");
  if (!vulkan) return { fits: false, why: "no driver of Vulkan is installed" };
  const call = (name: string, result: string, types: readonly string[], ...values: readonly unknown[]): void => {
    const code = vulkan.func(name, result, [...types])(...values) as number | undefined;
    if (code) throw new Error(`${name}: error ${code}`);
  };
  // VkInstanceCreateInfo: sType is 1, everything else is zero.
  const info = new Uint8Array(64);
  info[0] = 1;
  const instance = new BigUint64Array(1);
  call("vkCreateInstance", "int", ["void *", "void *", "void *"], info, null, instance);
  try {
    const count = new Uint32Array(1);
    const list = ["void *", "void *", "void *"];
    call("vkEnumeratePhysicalDevices", "int", list, instance[0] as Pointer, count, null);
    const handles = new BigUint64Array(count[0] ?? 0);
    if (handles.length > 0) call("vkEnumeratePhysicalDevices", "int", list, instance[0] as Pointer, count, handles);
    const devices = [...handles].map((handle) => {
      // VkPhysicalDeviceProperties has 824 bytes: apiVersion, driverVersion, vendorID, deviceID, deviceType, deviceName[256], ….
      const properties = new Uint8Array(1024);
      call("vkGetPhysicalDeviceProperties", "void", ["void *", "void *"], handle, properties);
      const [api = 0, , , , type = 0] = new Uint32Array(properties.buffer, 0, 5);
      const version = [(api >>> 22) & 0x7f, (api >>> 12) & 0x3ff] as const;
      return { name: text(properties.subarray(20, 276)), type, version };
    });
    const isGpu = ({ type }: { readonly type: number }): boolean =>
      all || type === deviceTypes.integrated || type === deviceTypes.discrete;
    const found = devices.find((one) => isGpu(one) && !isOld(one.version)) ?? devices[0];
    if (found === undefined) return { fits: false, why: "Vulkan finds no device: install the GPU's driver" };
    const shown = `${found.name}, Vulkan ${found.version.join(".")}`;
    if (isOld(found.version)) return { fits: false, why: `${shown}: llama.cpp needs Vulkan ${minVulkan.join(".")}` };
    return isGpu(found) ? { fits: true, why: shown } : { fits: false, why: `${shown}: it is no GPU` };
  } finally {
    call("vkDestroyInstance", "void", ["void *", "void *"], instance[0] as Pointer, null);
  }
}

function isOld([major, minor]: readonly [number, number]): boolean {
  return major < minVulkan[0] || (major === minVulkan[0] && minor < minVulkan[1]);
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}

/** A GPU whose driver is loaded by the system, without asking the driver; undefined if none is known. Linux only. */
export function systemGpu(): string | undefined {
  if (existsSync("/proc/driver/nvidia/version")) return "a GPU of NVIDIA";
  if (existsSync("/dev/kfd")) return "a GPU of AMD";
  try {
    const vendor = readFileSync("/sys/class/drm/renderD128/device/vendor", "utf8").trim();
    return { "0x8086": "a GPU of Intel", "0x1002": "a GPU of AMD", "0x10de": "a GPU of NVIDIA" }[vendor];
  } catch {
    return undefined;
  }
}
