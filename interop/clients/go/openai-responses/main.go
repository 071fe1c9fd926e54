// OpenAI's Go SDK over the Responses API.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	. "truewire/interop/clients/go/scenarios"
)

var (
	client = openai.NewClient(option.WithBaseURL(URL+"/v1"), option.WithAPIKey(Key))
	ctx    = context.Background()
)

func asked(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: Model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// read reads a whole stream. The SDK's accumulator takes the events of its sockets alone.
func read(params responses.ResponseNewParams) (*responses.Response, int, error) {
	events, count, text := client.Responses.NewStreaming(ctx, params), 0, ""
	defer events.Close()
	var last *responses.Response
	for events.Next() {
		count++
		event := events.Current()
		switch event.Type {
		case "response.output_text.delta":
			text += event.Delta
		case "response.completed":
			response := event.AsResponseCompleted().Response
			last = &response
		}
	}
	if err := events.Err(); err != nil {
		return nil, count, err
	}
	if last == nil {
		return nil, count, errors.New("no response.completed")
	}
	return last, count, Equal(text, last.OutputText(), "text of the pieces")
}

func stream() (string, error) {
	answer, events, err := read(asked("Hello"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events, total_tokens %d", events, answer.Usage.TotalTokens), Equal(answer.OutputText(), Greeting, "text")
}

func tools() (string, error) {
	params, calls := asked("Weather in Paris?"), 0
	function := responses.FunctionToolParam{Name: "get_weather", Parameters: CitySchema, Strict: openai.Bool(true)}
	params.Tools = []responses.ToolUnionParam{{OfFunction: &function}}
	for {
		answer, _, err := read(params)
		if err != nil {
			return "", err
		}
		var results responses.ResponseInputParam
		for _, item := range answer.Output {
			if item.Type != "function_call" {
				continue
			}
			calls++
			call := item.AsFunctionCall()
			if err := ReadCity(call.Arguments); err != nil {
				return "", err
			}
			result := responses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(call.CallID)}
			result.Output.OfString = openai.String(Weather)
			results = append(results, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &result})
		}
		if len(results) == 0 {
			return fmt.Sprintf("%d call, then a text, over previous_response_id", calls), Equal(answer.OutputText(), Result, "text")
		}
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
		params.PreviousResponseID = openai.String(answer.ID)
	}
}

func structured() (string, error) {
	params := asked("A person")
	params.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("person", PersonSchema)
	answer, err := client.Responses.New(ctx, params)
	if err != nil {
		return "", err
	}
	return ReadPerson(answer.OutputText())
}

func failure() (string, error) {
	params := asked("Hello")
	params.Model = NoSuchModel
	_, err := client.Responses.New(ctx, params)
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("no typed error: %v", err)
	}
	// OpenAI's Responses API answers 400 here, not 404 as Chat Completions does.
	if err := Equal([]any{refused.StatusCode, refused.Code}, []any{400, "model_not_found"}, "error"); err != nil {
		return "", err
	}
	again, err := client.Responses.New(ctx, asked(FailsOnce()))
	if err != nil {
		return "", err
	}
	return "openai.Error 400 model_not_found, as OpenAI's; 503 was tried again", Equal(again.OutputText(), Greeting, "text")
}

func cancel() (string, error) {
	ctx, stop := context.WithCancel(ctx)
	events := client.Responses.NewStreaming(ctx, asked(Slowly))
	for events.Next() {
		if events.Current().Type == "response.output_text.delta" {
			stop()
			break
		}
	}
	for events.Next() {
	}
	if err := events.Err(); !errors.Is(err, context.Canceled) {
		return "", fmt.Errorf("expected context.Canceled, found %v", err)
	}
	return "context.Canceled after the first piece", nil
}

func reasoning() (string, error) {
	answer, err := client.Responses.New(ctx, asked("Hello"))
	if err != nil {
		return "", err
	}
	for _, item := range answer.Output {
		if item.Type == "reasoning" {
			thought := item.AsReasoning()
			if len(thought.Content) > 0 {
				return "in content of a reasoning item", Equal(thought.Content[0].Text, Thought, "text")
			}
			return "", fmt.Errorf("no content in %s", item.RawJSON())
		}
	}
	return "", errors.New("no reasoning item")
}

func main() { Run(stream, tools, structured, failure, cancel, reasoning) }
