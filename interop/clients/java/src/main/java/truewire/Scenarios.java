package truewire;

import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;

/**
 * What the client programs share: six scenarios against Truewire, one JSON line for each on standard output.
 *
 * <pre>{"scenario": "stream", "ok": true, "detail": "..."}</pre>
 *
 * "ok" is null where the client has no such thing; "detail" then says why. The environment says where: TRUEWIRE_URL
 * (http://127.0.0.1:8080), TRUEWIRE_MODEL and TRUEWIRE_KEY. The model is ../../fixtures/scripted.ts, or one that answers like it.
 */
final class Scenarios {
  static final String URL = environment("TRUEWIRE_URL", "http://127.0.0.1:8080");
  static final String MODEL = environment("TRUEWIRE_MODEL", "scripted");
  static final String KEY = environment("TRUEWIRE_KEY", "none");

  static final String GREETING = "Hello from Truewire.";
  static final String THOUGHT = "Let me think.";
  static final String SLOWLY = "Slowly, please.";
  static final String NO_SUCH_MODEL = "no-such-model";
  /** What the tool GetWeather answers, and what the model says then. */
  static final String WEATHER = "21 degrees";
  static final String RESULT = "The result is " + WEATHER + ".";

  /** The value that the structured scenarios ask for. */
  static final class Person {
    public String name;
    public int age;
    public List<String> tags;

    @Override
    public String toString() {
      return name + ", " + age + ", " + tags;
    }
  }

  /** The arguments of a tool. */
  static final class GetWeather {
    public String city;
  }

  /** The client has no such thing; the message says why. */
  static final class Missing extends RuntimeException {
    Missing(String reason) {
      super(reason);
    }
  }

  private record Line(String scenario, Boolean ok, String detail) {}

  static void report(String scenario, Callable<String> run) throws Exception {
    Line line;
    try {
      line = new Line(scenario, true, run.call());
    } catch (Missing reason) {
      line = new Line(scenario, null, reason.getMessage());
    } catch (Exception | AssertionError failed) {
      String detail = failed.toString() + (failed.getCause() == null ? "" : " ← " + failed.getCause());
      line = new Line(scenario, false, detail.substring(0, Math.min(2000, detail.length())));
    }
    System.out.println(JsonMapper.builder().build().writeValueAsString(line));
  }

  static void equal(Object found, Object expected, String what) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(what + ": expected " + expected + ", found " + found);
    }
  }

  /** A text that gets status 503 the first time, and an answer the second time. */
  static String failsOnce() {
    return "503 once: " + UUID.randomUUID();
  }

  private static String environment(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  private Scenarios() {}
}
