package truewire;

import static truewire.Scenarios.*;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.NotFoundException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import java.util.List;
import java.util.Optional;

/** OpenAI's Java SDK over Chat Completions, which checks every answer against its types. */
final class OpenAiChat {
  private static final OpenAIClient client =
      OpenAIOkHttpClient.builder().baseUrl(URL + "/v1").apiKey(KEY).responseValidation(true).build();

  private static ChatCompletionCreateParams.Builder asked(String text) {
    return ChatCompletionCreateParams.builder().model(MODEL).addUserMessage(text);
  }

  private static String textOf(ChatCompletion answer) {
    return answer.choices().get(0).message().content().orElse(null);
  }

  private static String stream() {
    ChatCompletionAccumulator whole = ChatCompletionAccumulator.create();
    int count = 0;
    ChatCompletionStreamOptions options = ChatCompletionStreamOptions.builder().includeUsage(true).build();
    try (StreamResponse<ChatCompletionChunk> chunks =
        client.chat().completions().createStreaming(asked("Hello").streamOptions(options).build())) {
      for (ChatCompletionChunk chunk : (Iterable<ChatCompletionChunk>) chunks.stream()::iterator) {
        whole.accumulate(chunk);
        count++;
      }
    }
    equal(textOf(whole.chatCompletion()), GREETING, "text");
    return count + " chunks, usage " + whole.chatCompletion().usage().map(usage -> usage.totalTokens());
  }

  private static String tools() {
    ChatCompletionCreateParams.Builder asked = asked("Weather in Paris?").addTool(GetWeather.class);
    int calls = 0;
    while (true) {
      ChatCompletionMessage message = client.chat().completions().create(asked.build()).choices().get(0).message();
      List<ChatCompletionMessageToolCall> wanted = message.toolCalls().orElse(List.of());
      if (wanted.isEmpty()) {
        equal(message.content(), Optional.of(RESULT), "text");
        return calls + " call, then a text";
      }
      asked.addMessage(message);
      for (ChatCompletionMessageToolCall call : wanted) {
        calls++;
        equal(call.asFunction().function().arguments(GetWeather.class).city, "Paris", "city");
        asked.addMessage(
            ChatCompletionToolMessageParam.builder().toolCallId(call.asFunction().id()).content(WEATHER).build());
      }
    }
  }

  private static String structured() {
    Optional<Person> person =
        client.chat().completions().create(asked("A person, by the alphabet").responseFormat(Person.class).build())
            .choices().get(0).message().content();
    return person.orElseThrow().toString();
  }

  private static String error() {
    try {
      client.chat().completions().create(asked("Hello").model(NO_SUCH_MODEL).build());
      throw new AssertionError("an unknown model was answered");
    } catch (NotFoundException refused) {
      equal(refused.statusCode() + " " + refused.code(), "404 Optional[model_not_found]", "error");
    }
    equal(textOf(client.chat().completions().create(asked(failsOnce()).build())), GREETING, "text");
    return "NotFoundException 404 model_not_found; 503 was tried again";
  }

  private static String cancel() {
    try (StreamResponse<ChatCompletionChunk> chunks =
        client.chat().completions().createStreaming(asked(SLOWLY).build())) {
      Optional<String> first =
          chunks.stream()
              .flatMap(chunk -> chunk.choices().stream())
              .flatMap(choice -> choice.delta().content().stream())
              .filter(text -> !text.isEmpty())
              .findFirst();
      equal(first, Optional.of("Hello "), "first piece");
    }
    return "closed after the first piece";
  }

  private static String reasoning() {
    ChatCompletionMessage message =
        client.chat().completions().create(asked("Hello").build()).choices().get(0).message();
    equal(String.valueOf(message._additionalProperties().get("reasoning_content")), THOUGHT, "reasoning_content");
    return "in _additionalProperties of the message";
  }

  public static void main(String[] arguments) throws Exception {
    report("stream", OpenAiChat::stream);
    report("tools", OpenAiChat::tools);
    report("structured", OpenAiChat::structured);
    report("error", OpenAiChat::error);
    report("cancel", OpenAiChat::cancel);
    report("reasoning", OpenAiChat::reasoning);
    client.close();
  }
}
