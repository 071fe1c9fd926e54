// OpenAI's Go SDK over Chat Completions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	. "truewire/interop/clients/go/scenarios"
)

var (
	client = openai.NewClient(option.WithBaseURL(URL+"/v1"), option.WithAPIKey(Key))
	ctx    = context.Background()
)

func asked(text string) openai.ChatCompletionNewParams {
	messages := []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}
	return openai.ChatCompletionNewParams{Model: Model, Messages: messages}
}

func stream() (string, error) {
	params := asked("Hello")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	chunks, pieces := client.Chat.Completions.NewStreaming(ctx, params), 0
	defer chunks.Close()
	var whole openai.ChatCompletionAccumulator
	for chunks.Next() {
		pieces++
		if !whole.AddChunk(chunks.Current()) {
			return "", fmt.Errorf("the accumulator refused %s", chunks.Current().RawJSON())
		}
	}
	if err := chunks.Err(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d chunks, total_tokens %d", pieces, whole.Usage.TotalTokens),
		Equal(whole.Choices[0].Message.Content, Greeting, "text")
}

func tools() (string, error) {
	params, calls := asked("Weather in Paris?"), 0
	function := shared.FunctionDefinitionParam{Name: "get_weather", Parameters: CitySchema, Strict: openai.Bool(true)}
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(function)}
	for {
		chunks := client.Chat.Completions.NewStreaming(ctx, params)
		var whole openai.ChatCompletionAccumulator
		for chunks.Next() {
			if !whole.AddChunk(chunks.Current()) {
				return "", fmt.Errorf("the accumulator refused %s", chunks.Current().RawJSON())
			}
		}
		if err := chunks.Err(); err != nil {
			return "", err
		}
		message := whole.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return fmt.Sprintf("%d call, then a text", calls), Equal(message.Content, Result, "text")
		}
		params.Messages = append(params.Messages, message.ToParam())
		for _, call := range message.ToolCalls {
			calls++
			if err := ReadCity(call.Function.Arguments); err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, openai.ToolMessage(Weather, call.ID))
		}
	}
}

func structured() (string, error) {
	params := asked("A person")
	params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Schema: PersonSchema, Strict: openai.Bool(true)},
	}
	answer, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		return "", err
	}
	return ReadPerson(answer.Choices[0].Message.Content)
}

func failure() (string, error) {
	params := asked("Hello")
	params.Model = NoSuchModel
	_, err := client.Chat.Completions.New(ctx, params)
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("no typed error: %v", err)
	}
	if err := Equal([]any{refused.StatusCode, refused.Code}, []any{404, "model_not_found"}, "error"); err != nil {
		return "", err
	}
	again, err := client.Chat.Completions.New(ctx, asked(FailsOnce()))
	if err != nil {
		return "", err
	}
	return "openai.Error 404 model_not_found; 503 was tried again", Equal(again.Choices[0].Message.Content, Greeting, "text")
}

func cancel() (string, error) {
	ctx, stop := context.WithCancel(ctx)
	chunks := client.Chat.Completions.NewStreaming(ctx, asked(Slowly))
	for chunks.Next() {
		if choices := chunks.Current().Choices; len(choices) > 0 && choices[0].Delta.Content != "" {
			stop()
			break
		}
	}
	for chunks.Next() {
	}
	if err := chunks.Err(); !errors.Is(err, context.Canceled) {
		return "", fmt.Errorf("expected context.Canceled, found %v", err)
	}
	return "context.Canceled after the first piece", nil
}

func reasoning() (string, error) {
	answer, err := client.Chat.Completions.New(ctx, asked("Hello"))
	if err != nil {
		return "", err
	}
	// A member that the SDK does not declare.
	var thought string
	raw := answer.Choices[0].Message.JSON.ExtraFields["reasoning_content"].Raw()
	if err := json.Unmarshal([]byte(raw), &thought); err != nil {
		return "", fmt.Errorf("reasoning_content %q: %w", raw, err)
	}
	return "in JSON.ExtraFields of the message", Equal(thought, Thought, "reasoning_content")
}

func main() { Run(stream, tools, structured, failure, cancel, reasoning) }
