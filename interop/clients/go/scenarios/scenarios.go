// Package scenarios is what the client programs share: six scenarios against Truewire, one JSON line for each on standard output.
//
//	{"scenario": "stream", "ok": true, "detail": "..."}
//
// "ok" is null where the client has no such thing; "detail" then says why. The environment says where: TRUEWIRE_URL
// (http://127.0.0.1:8080), TRUEWIRE_MODEL and TRUEWIRE_KEY. The model is ../../fixtures/scripted.ts, or one that answers like it.
package scenarios

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
)

var (
	URL   = environment("TRUEWIRE_URL", "http://127.0.0.1:8080")
	Model = environment("TRUEWIRE_MODEL", "scripted")
	Key   = environment("TRUEWIRE_KEY", "none")
)

const (
	Greeting    = "Hello from Truewire."
	Thought     = "Let me think."
	Slowly      = "Slowly, please."
	NoSuchModel = "no-such-model"
	// Weather is what the tool get_weather answers; Result is what the model says then.
	Weather = "21 degrees"
	Result  = "The result is " + Weather + "."
)

// Person is the value that the structured scenarios ask for.
type Person struct {
	Name string   `json:"name"`
	Age  int      `json:"age"`
	Tags []string `json:"tags"`
}

// PersonSchema is Person's JSON schema. Go writes the keys of a map in the order of the alphabet; local models answer in the schema's order.
var PersonSchema = map[string]any{
	"type": "object",
	"properties": json.RawMessage(`{
		"name": {"type": "string"},
		"age": {"type": "integer"},
		"tags": {"type": "array", "items": {"type": "string"}}
	}`),
	"required":             []string{"name", "age", "tags"},
	"additionalProperties": false,
}

// CitySchema is the JSON schema of get_weather's arguments.
var CitySchema = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"city": map[string]any{"type": "string"}},
	"required":             []string{"city"},
	"additionalProperties": false,
}

// ReadPerson reads a structured answer; members that Person lacks are an error.
func ReadPerson(text string) (string, error) {
	var person Person
	if err := json.Unmarshal([]byte(text), &person); err != nil {
		return "", fmt.Errorf("%w in %q", err, text)
	}
	if person.Name == "" || person.Age == 0 || len(person.Tags) == 0 {
		return "", fmt.Errorf("a member is missing in %q", text)
	}
	return text, nil
}

// ReadCity reads the arguments of a call of get_weather.
func ReadCity(arguments string) error {
	var call struct {
		City string `json:"city"`
	}
	if err := json.Unmarshal([]byte(arguments), &call); err != nil {
		return fmt.Errorf("%w in %q", err, arguments)
	}
	return Equal(call.City, "Paris", "city")
}

// FailsOnce returns a text that gets status 503 the first time, and an answer the second time.
func FailsOnce() string { return "503 once: " + rand.Text() }

// Equal returns an error that shows both values, or nil.
func Equal(found, expected any, what string) error {
	if reflect.DeepEqual(found, expected) {
		return nil
	}
	return fmt.Errorf("%s: expected %#v, found %#v", what, expected, found)
}

// ErrMissing says that a client has no such thing; wrap it with the reason.
var ErrMissing = errors.New("not in this client")

// Scenario returns its detail, or what failed.
type Scenario = func() (string, error)

// Run runs the scenarios in order.
func Run(stream, tools, structured, failure, cancel, reasoning Scenario) {
	report("stream", stream)
	report("tools", tools)
	report("structured", structured)
	report("error", failure)
	report("cancel", cancel)
	report("reasoning", reasoning)
}

func report(name string, scenario Scenario) {
	detail, err := scenario()
	ok := new(bool)
	switch {
	case errors.Is(err, ErrMissing):
		ok, detail = nil, err.Error()
	case err != nil:
		detail = err.Error()
	default:
		*ok = true
	}
	line, _ := json.Marshal(struct {
		Scenario string `json:"scenario"`
		OK       *bool  `json:"ok"`
		Detail   string `json:"detail"`
	}{name, ok, detail})
	fmt.Println(string(line))
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
