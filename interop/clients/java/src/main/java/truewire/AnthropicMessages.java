package truewire;

import static truewire.Scenarios.*;

import com.anthropic.client.AnthropicClient;
import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.core.JsonValue;
import com.anthropic.core.http.StreamResponse;
import com.anthropic.errors.NotFoundException;
import com.anthropic.helpers.MessageAccumulator;
import com.anthropic.models.messages.ContentBlock;
import com.anthropic.models.messages.ContentBlockParam;
import com.anthropic.models.messages.Message;
import com.anthropic.models.messages.MessageCreateParams;
import com.anthropic.models.messages.RawMessageStreamEvent;
import com.anthropic.models.messages.ThinkingBlock;
import com.anthropic.models.messages.Tool;
import com.anthropic.models.messages.ToolResultBlockParam;
import com.anthropic.models.messages.ToolUseBlock;
import com.fasterxml.jackson.core.type.TypeReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** Anthropic's Java SDK, which checks every answer against its types. */
final class AnthropicMessages {
  private static final AnthropicClient client =
      AnthropicOkHttpClient.builder().baseUrl(URL).apiKey(KEY).responseValidation(true).build();

  private static final Tool getWeather =
      Tool.builder()
          .name("get_weather")
          .inputSchema(
              Tool.InputSchema.builder()
                  .properties(JsonValue.from(Map.of("city", Map.of("type", "string"))))
                  .required(List.of("city"))
                  .build())
          .build();

  private static MessageCreateParams.Builder asked(String text) {
    return MessageCreateParams.builder().model(MODEL).maxTokens(2048).addUserMessage(text);
  }

  private static String textOf(Message message) {
    return message.content().stream()
        .flatMap(block -> block.text().stream())
        .map(block -> block.text())
        .collect(Collectors.joining());
  }

  /** Reads a whole stream with the SDK's accumulator. */
  private static Message read(MessageCreateParams asked) {
    MessageAccumulator whole = MessageAccumulator.create();
    try (StreamResponse<RawMessageStreamEvent> events = client.messages().createStreaming(asked)) {
      events.stream().forEach(whole::accumulate);
    }
    return whole.message();
  }

  private static String stream() {
    Message message = read(asked("Hello").build());
    equal(textOf(message), GREETING, "text");
    return "stop reason " + message.stopReason() + ", output tokens " + message.usage().outputTokens();
  }

  private static String tools() {
    MessageCreateParams.Builder asked = asked("Weather in Paris?").addTool(getWeather);
    int calls = 0;
    while (true) {
      Message message = read(asked.build());
      List<ContentBlockParam> results = new ArrayList<>();
      for (ContentBlock block : message.content()) {
        if (block.toolUse().isEmpty()) continue;
        calls++;
        ToolUseBlock call = block.asToolUse();
        equal(call._input().convert(new TypeReference<Map<String, String>>() {}), Map.of("city", "Paris"), "input");
        results.add(
            ContentBlockParam.ofToolResult(
                ToolResultBlockParam.builder().toolUseId(call.id()).content(WEATHER).build()));
      }
      if (results.isEmpty()) {
        equal(textOf(message), RESULT, "text");
        return calls + " call, then a text";
      }
      asked.addMessage(message).addUserMessageOfContentBlockParams(results);
    }
  }

  private static String structured() {
    Optional<Person> person =
        client.messages().create(asked("A person, by the alphabet").outputConfig(Person.class).build()).content().stream()
            .flatMap(block -> block.text().stream())
            .map(block -> block.text())
            .findFirst();
    return person.orElseThrow().toString();
  }

  private static String error() {
    try {
      client.messages().create(asked("Hello").model(NO_SUCH_MODEL).build());
      throw new AssertionError("an unknown model was answered");
    } catch (NotFoundException refused) {
      equal(refused.statusCode(), 404, "status");
    }
    equal(textOf(client.messages().create(asked(failsOnce()).build())), GREETING, "text");
    return "NotFoundException 404; 503 was tried again";
  }

  private static String cancel() {
    try (StreamResponse<RawMessageStreamEvent> events = client.messages().createStreaming(asked(SLOWLY).build())) {
      Optional<String> first =
          events.stream()
              .flatMap(event -> event.contentBlockDelta().stream())
              .flatMap(event -> event.delta().text().stream())
              .map(delta -> delta.text())
              .findFirst();
      equal(first, Optional.of("Hello "), "first piece");
    }
    return "closed after the first piece";
  }

  private static String reasoning() {
    Optional<ThinkingBlock> thought =
        client.messages().create(asked("Hello").enabledThinking(1024).build()).content().stream()
            .flatMap(block -> block.thinking().stream())
            .findFirst();
    equal(thought.orElseThrow().thinking(), THOUGHT, "thinking");
    return "a thinking block, signature of " + thought.get().signature().length() + " characters";
  }

  public static void main(String[] arguments) throws Exception {
    report("stream", AnthropicMessages::stream);
    report("tools", AnthropicMessages::tools);
    report("structured", AnthropicMessages::structured);
    report("error", AnthropicMessages::error);
    report("cancel", AnthropicMessages::cancel);
    report("reasoning", AnthropicMessages::reasoning);
    client.close();
  }
}
