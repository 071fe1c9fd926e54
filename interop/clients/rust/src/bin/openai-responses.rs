//! async-openai over the Responses API. Its types refuse what OpenAI's description of the API does not have.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::responses::{CreateResponse, OutputItem, ReasoningItemContent, Response, ResponseStreamEvent};
use futures::StreamExt;
use serde_json::{Value, json};
use truewire_interop_clients::*;

type Error = Box<dyn std::error::Error>;

fn client() -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(format!("{}/v1", url())).with_api_key(key()))
}

/// A request of the client's own type, with more members.
fn asked(input: Value, more: Value) -> Result<CreateResponse, Error> {
    let mut request = json!({ "model": model(), "input": input });
    for (name, value) in more.as_object().expect("members") {
        request[name] = value.clone();
    }
    Ok(serde_json::from_value(request)?)
}

fn text_of(answer: &Response) -> String {
    answer.output_text().unwrap_or_default()
}

async fn stream() -> Outcome {
    let mut events = client().responses().create_stream(asked(json!("Hello"), json!({}))?).await?;
    let (mut text, mut count, mut last) = (String::new(), 0, None);
    while let Some(event) = events.next().await {
        count += 1;
        match event? {
            ResponseStreamEvent::ResponseOutputTextDelta(event) => text += &event.delta,
            ResponseStreamEvent::ResponseCompleted(event) => last = Some(event.response),
            _ => {}
        }
    }
    let last = last.ok_or("no response.completed")?;
    equal(text.as_str(), GREETING, "text")?;
    equal(text_of(&last).as_str(), GREETING, "completed")?;
    done(format!("{count} events, usage {:?}", last.usage))
}

async fn tools() -> Outcome {
    let tool = json!({ "type": "function", "name": "get_weather", "parameters": city_schema(), "strict": true });
    let mut request = asked(json!("Weather in Paris?"), json!({ "tools": [tool] }))?;
    let mut calls = 0;
    loop {
        let answer = client().responses().create(request).await?;
        let mut results = Vec::new();
        for item in &answer.output {
            if let OutputItem::FunctionCall(call) = item {
                calls += 1;
                let arguments: City = serde_json::from_str(&call.arguments)?;
                equal(arguments.city.as_str(), "Paris", "city")?;
                results.push(json!({ "type": "function_call_output", "call_id": call.call_id, "output": WEATHER }));
            }
        }
        if results.is_empty() {
            equal(text_of(&answer).as_str(), RESULT, "text")?;
            return done(format!("{calls} call, then a text, over previous_response_id"));
        }
        request = asked(json!(results), json!({ "tools": [tool], "previous_response_id": answer.id }))?;
    }
}

async fn structured() -> Outcome {
    let format = json!({ "type": "json_schema", "name": "person", "schema": person_schema(), "strict": true });
    let answer = client().responses().create(asked(json!("A person"), json!({ "text": { "format": format } }))?).await?;
    let person: Person = serde_json::from_str(&text_of(&answer))?;
    done(format!("{person:?}"))
}

async fn failure() -> Outcome {
    match client().responses().create(asked(json!("Hello"), json!({ "model": NO_SUCH_MODEL }))?).await {
        Err(OpenAIError::ApiError(refused)) => {
            // OpenAI's Responses API answers 400 here, not 404 as Chat Completions does.
            let found = (refused.status_code.as_u16(), refused.api_error.code.as_deref().unwrap_or(""));
            equal(found, (400, "model_not_found"), "error")?;
        }
        other => return Err(format!("expected ApiError, found {other:?}").into()),
    }
    let again = client().responses().create(asked(json!(fails_once()), json!({}))?).await?;
    equal(text_of(&again).as_str(), GREETING, "text")?;
    done("ApiError 400 model_not_found, as OpenAI's; 503 was tried again")
}

async fn cancel() -> Outcome {
    let mut events = client().responses().create_stream(asked(json!(SLOWLY), json!({}))?).await?;
    while let Some(event) = events.next().await {
        if let ResponseStreamEvent::ResponseOutputTextDelta(event) = event? {
            equal(event.delta.as_str(), "Hello ", "first piece")?;
            drop(events);
            return done("dropped after the first piece");
        }
    }
    Err("no piece came".into())
}

async fn reasoning() -> Outcome {
    let answer = client().responses().create(asked(json!("Hello"), json!({}))?).await?;
    for item in &answer.output {
        if let OutputItem::Reasoning(thought) = item {
            let texts = thought.content.iter().flatten().map(|ReasoningItemContent::ReasoningText(part)| part.text.as_str());
            equal(texts.collect::<Vec<_>>(), vec![THOUGHT], "content")?;
            return done("in content of a reasoning item");
        }
    }
    Err("no reasoning item".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    report("stream", stream().await);
    report("tools", tools().await);
    report("structured", structured().await);
    report("error", failure().await);
    report("cancel", cancel().await);
    report("reasoning", reasoning().await);
}
