// Ollama's Go client, the one that its own command line uses.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ollama/ollama/api"

	. "truewire/interop/clients/go/scenarios"
)

var ctx = context.Background()

var client = func() *api.Client {
	base, err := url.Parse(URL)
	if err != nil {
		panic(err)
	}
	return api.NewClient(base, &http.Client{Transport: withKey{}})
}()

// withKey sends the key; the client itself has no setting for one.
type withKey struct{}

func (withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+Key)
	return http.DefaultTransport.RoundTrip(request)
}

// chat sends a conversation and returns the whole message with the number of parts that it came in.
func chat(request api.ChatRequest) (api.ChatResponse, int, error) {
	var whole api.ChatResponse
	parts, text, thinking := 0, "", ""
	var calls []api.ToolCall
	err := client.Chat(ctx, &request, func(part api.ChatResponse) error {
		parts++
		text += part.Message.Content
		thinking += part.Message.Thinking
		calls = append(calls, part.Message.ToolCalls...)
		whole = part
		return nil
	})
	whole.Message.Content, whole.Message.Thinking, whole.Message.ToolCalls = text, thinking, calls
	return whole, parts, err
}

func asked(text string) api.ChatRequest {
	return api.ChatRequest{Model: Model, Messages: []api.Message{{Role: "user", Content: text}}}
}

func stream() (string, error) {
	answer, parts, err := chat(asked("Hello"))
	if err != nil {
		return "", err
	}
	if err := Equal([]any{answer.Done, answer.DoneReason}, []any{true, "stop"}, "last part"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d parts, eval_count %d", parts, answer.EvalCount), Equal(answer.Message.Content, Greeting, "text")
}

func tools() (string, error) {
	request, calls := asked("Weather in Paris?"), 0
	properties := api.NewToolPropertiesMap()
	properties.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}})
	parameters := api.ToolFunctionParameters{Type: "object", Properties: properties, Required: []string{"city"}}
	request.Tools = api.Tools{{Type: "function", Function: api.ToolFunction{Name: "get_weather", Parameters: parameters}}}
	for {
		answer, _, err := chat(request)
		if err != nil {
			return "", err
		}
		if len(answer.Message.ToolCalls) == 0 {
			return fmt.Sprintf("%d call, then a text", calls), Equal(answer.Message.Content, Result, "text")
		}
		request.Messages = append(request.Messages, answer.Message)
		for _, call := range answer.Message.ToolCalls {
			calls++
			if err := ReadCity(call.Function.Arguments.String()); err != nil {
				return "", err
			}
			result := api.Message{Role: "tool", Content: Weather, ToolName: call.Function.Name, ToolCallID: call.ID}
			request.Messages = append(request.Messages, result)
		}
	}
}

func structured() (string, error) {
	request := asked("A person")
	request.Format, _ = json.Marshal(PersonSchema)
	answer, _, err := chat(request)
	if err != nil {
		return "", err
	}
	return ReadPerson(answer.Message.Content)
}

func failure() (string, error) {
	request := asked("Hello")
	request.Model = NoSuchModel
	_, _, err := chat(request)
	var refused api.StatusError
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("no typed error: %v", err)
	}
	if err := Equal(refused.StatusCode, 404, "status"); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("api.StatusError 404 %q; 503 is one, too: the client never tries again", refused.ErrorMessage)
	_, _, err = chat(asked(FailsOnce()))
	if err == nil {
		// A local model never fails.
		return detail, nil
	}
	var unavailable api.StatusError
	if !errors.As(err, &unavailable) {
		return "", fmt.Errorf("no typed error: %v", err)
	}
	return detail, Equal(unavailable.StatusCode, 503, "status")
}

func cancel() (string, error) {
	ctx, stop := context.WithCancel(ctx)
	request, pieces := asked(Slowly), ""
	// The client drops the error of a broken stream, so a cancelled one looks complete but for its `done`.
	err := client.Chat(ctx, &request, func(part api.ChatResponse) error {
		pieces += part.Message.Content
		if part.Message.Content != "" {
			stop()
		}
		return Equal(part.Done, false, "done")
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return "", err
	}
	// What had arrived with the first piece comes, too.
	return fmt.Sprintf("stopped after the first piece; the client returned %v", err), Equal(strings.HasPrefix(pieces, "Hello "), true, "the first piece is Hello")
}

func reasoning() (string, error) {
	request := asked("Hello")
	request.Think = &api.ThinkValue{Value: true}
	answer, _, err := chat(request)
	if err != nil {
		return "", err
	}
	return "in Message.Thinking", Equal(answer.Message.Thinking, Thought, "thinking")
}

func main() { Run(stream, tools, structured, failure, cancel, reasoning) }
