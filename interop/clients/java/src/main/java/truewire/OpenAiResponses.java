package truewire;

import static truewire.Scenarios.*;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.helpers.ResponseAccumulator;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseFunctionToolCall;
import com.openai.models.responses.ResponseInputItem;
import com.openai.models.responses.ResponseOutputItem;
import com.openai.models.responses.ResponseReasoningItem;
import com.openai.models.responses.ResponseStreamEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** OpenAI's Java SDK over the Responses API, which checks every answer against its types. */
final class OpenAiResponses {
  private static final OpenAIClient client =
      OpenAIOkHttpClient.builder().baseUrl(URL + "/v1").apiKey(KEY).responseValidation(true).build();

  private static ResponseCreateParams.Builder asked(String text) {
    return ResponseCreateParams.builder().model(MODEL).input(text);
  }

  private static String textOf(Response answer) {
    return answer.output().stream()
        .flatMap(item -> item.message().stream())
        .flatMap(message -> message.content().stream())
        .flatMap(part -> part.outputText().stream())
        .map(part -> part.text())
        .collect(Collectors.joining());
  }

  private static String stream() {
    ResponseAccumulator whole = ResponseAccumulator.create();
    int count = 0;
    try (StreamResponse<ResponseStreamEvent> events =
        client.responses().createStreaming(asked("Hello").build())) {
      for (ResponseStreamEvent event : (Iterable<ResponseStreamEvent>) events.stream()::iterator) {
        whole.accumulate(event);
        count++;
      }
    }
    equal(textOf(whole.response()), GREETING, "text");
    return count + " events, usage " + whole.response().usage().map(usage -> usage.totalTokens());
  }

  private static String tools() {
    ResponseCreateParams.Builder asked = asked("Weather in Paris?").addTool(GetWeather.class);
    int calls = 0;
    while (true) {
      Response answer = client.responses().create(asked.build());
      List<ResponseInputItem> results = new ArrayList<>();
      for (ResponseOutputItem item : answer.output()) {
        if (item.functionCall().isEmpty()) continue;
        calls++;
        ResponseFunctionToolCall call = item.asFunctionCall();
        equal(call.arguments(GetWeather.class).city, "Paris", "city");
        results.add(
            ResponseInputItem.ofFunctionCallOutput(
                ResponseInputItem.FunctionCallOutput.builder().callId(call.callId()).output(WEATHER).build()));
      }
      if (results.isEmpty()) {
        equal(textOf(answer), RESULT, "text");
        return calls + " call, then a text, over previous_response_id";
      }
      asked.input(ResponseCreateParams.Input.ofResponse(results)).previousResponseId(answer.id());
    }
  }

  private static String structured() {
    Optional<Person> person =
        client.responses().create(asked("A person, by the alphabet").text(Person.class).build()).output().stream()
            .flatMap(item -> item.message().stream())
            .flatMap(message -> message.content().stream())
            .flatMap(part -> part.outputText().stream())
            .findFirst();
    return person.orElseThrow().toString();
  }

  private static String error() {
    try {
      client.responses().create(asked("Hello").model(NO_SUCH_MODEL).build());
      throw new AssertionError("an unknown model was answered");
    } catch (BadRequestException refused) {
      // OpenAI's Responses API answers 400 here, not 404 as Chat Completions does.
      equal(refused.statusCode() + " " + refused.code(), "400 Optional[model_not_found]", "error");
    }
    equal(textOf(client.responses().create(asked(failsOnce()).build())), GREETING, "text");
    return "BadRequestException 400 model_not_found, as OpenAI's; 503 was tried again";
  }

  private static String cancel() {
    try (StreamResponse<ResponseStreamEvent> events =
        client.responses().createStreaming(asked(SLOWLY).build())) {
      Optional<String> first =
          events.stream().flatMap(event -> event.outputTextDelta().stream()).map(event -> event.delta()).findFirst();
      equal(first, Optional.of("Hello "), "first piece");
    }
    return "closed after the first piece";
  }

  private static String reasoning() {
    Optional<ResponseReasoningItem> item =
        client.responses().create(asked("Hello").build()).output().stream()
            .flatMap(each -> each.reasoning().stream())
            .findFirst();
    equal(item.orElseThrow().content().orElseThrow().get(0).text(), THOUGHT, "content");
    return "in content of a reasoning item";
  }

  public static void main(String[] arguments) throws Exception {
    report("stream", OpenAiResponses::stream);
    report("tools", OpenAiResponses::tools);
    report("structured", OpenAiResponses::structured);
    report("error", OpenAiResponses::error);
    report("cancel", OpenAiResponses::cancel);
    report("reasoning", OpenAiResponses::reasoning);
    client.close();
  }
}
