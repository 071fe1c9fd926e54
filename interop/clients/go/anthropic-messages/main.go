// Anthropic's Go SDK.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	. "truewire/interop/clients/go/scenarios"
)

var (
	client = anthropic.NewClient(option.WithBaseURL(URL), option.WithAPIKey(Key))
	ctx    = context.Background()
)

func asked(text string) anthropic.MessageNewParams {
	messages := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}
	return anthropic.MessageNewParams{Model: Model, MaxTokens: 2048, Messages: messages}
}

func textOf(message *anthropic.Message) string {
	text := ""
	for _, block := range message.Content {
		if block.Type == "text" {
			text += block.Text
		}
	}
	return text
}

// read reads a whole stream with the SDK's accumulator.
func read(params anthropic.MessageNewParams) (*anthropic.Message, int, error) {
	events, count := client.Messages.NewStreaming(ctx, params), 0
	defer events.Close()
	var message anthropic.Message
	for events.Next() {
		count++
		if err := message.Accumulate(events.Current()); err != nil {
			return nil, count, fmt.Errorf("%w at %s", err, events.Current().RawJSON())
		}
	}
	return &message, count, events.Err()
}

func stream() (string, error) {
	message, events, err := read(asked("Hello"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events, stop_reason %s, output_tokens %d", events, message.StopReason, message.Usage.OutputTokens),
		Equal(textOf(message), Greeting, "text")
}

func tools() (string, error) {
	params, calls := asked("Weather in Paris?"), 0
	schema := anthropic.ToolInputSchemaParam{Properties: CitySchema["properties"], Required: []string{"city"}}
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: schema}}}
	for {
		message, _, err := read(params)
		if err != nil {
			return "", err
		}
		var results []anthropic.ContentBlockParamUnion
		for _, block := range message.Content {
			if block.Type != "tool_use" {
				continue
			}
			calls++
			call := block.AsToolUse()
			if err := ReadCity(string(call.Input)); err != nil {
				return "", err
			}
			results = append(results, anthropic.NewToolResultBlock(call.ID, Weather, false))
		}
		if len(results) == 0 {
			return fmt.Sprintf("%d call, then a text", calls), Equal(textOf(message), Result, "text")
		}
		params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(results...))
	}
}

func structured() (string, error) {
	params := asked("A person")
	params.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: PersonSchema}
	message, err := client.Messages.New(ctx, params)
	if err != nil {
		return "", err
	}
	return ReadPerson(textOf(message))
}

func failure() (string, error) {
	params := asked("Hello")
	params.Model = NoSuchModel
	_, err := client.Messages.New(ctx, params)
	var refused *anthropic.Error
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("no typed error: %v", err)
	}
	if err := Equal(refused.StatusCode, 404, "status"); err != nil {
		return "", err
	}
	again, err := client.Messages.New(ctx, asked(FailsOnce()))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("anthropic.Error 404, request id %q; 503 was tried again", refused.RequestID), Equal(textOf(again), Greeting, "text")
}

func cancel() (string, error) {
	ctx, stop := context.WithCancel(ctx)
	events := client.Messages.NewStreaming(ctx, asked(Slowly))
	for events.Next() {
		if events.Current().Type == "content_block_delta" && events.Current().Delta.Text != "" {
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
	params := asked("Hello")
	params.Thinking.OfEnabled = &anthropic.ThinkingConfigEnabledParam{BudgetTokens: 1024}
	message, _, err := read(params)
	if err != nil {
		return "", err
	}
	for _, block := range message.Content {
		if block.Type == "thinking" {
			return fmt.Sprintf("a thinking block, signature of %d characters", len(block.Signature)), Equal(block.Thinking, Thought, "thinking")
		}
	}
	return "", errors.New("no thinking block")
}

func main() { Run(stream, tools, structured, failure, cancel, reasoning) }
