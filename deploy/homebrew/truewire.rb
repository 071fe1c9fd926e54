# A template: `npm run manifests` writes the version's URL and hash. Untested: no version has been released yet, and Homebrew has never run this.
class Truewire < Formula
  desc "APIs that clients of language models expect, over anything that generates text"
  homepage "https://www.npmjs.com/package/truewire"
  url "URL"
  sha256 "SHA256"
  license "MIT"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
    generate_completions_from_executable(bin/"truewire", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/truewire --version")
    assert_match "is valid", shell_output("echo 'models: [localhost:8000]' > truewire.yaml && #{bin}/truewire config check")
  end
end
