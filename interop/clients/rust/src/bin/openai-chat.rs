//! async-openai over Chat Completions.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{ChatCompletionMessageToolCalls, CreateChatCompletionRequest, CreateChatCompletionResponse};
use futures::StreamExt;
use serde_json::{Value, json};
use truewire_interop_clients::*;

type Error = Box<dyn std::error::Error>;

fn client() -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(format!("{}/v1", url())).with_api_key(key()))
}

/// A request of the client's own type, with more members.
fn asked(messages: &[Value], more: Value) -> Result<CreateChatCompletionRequest, Error> {
    let mut request = json!({ "model": model(), "messages": messages });
    for (name, value) in more.as_object().expect("members") {
        request[name] = value.clone();
    }
    Ok(serde_json::from_value(request)?)
}

fn said(text: &str) -> Vec<Value> {
    vec![json!({ "role": "user", "content": text })]
}

fn text_of(answer: &CreateChatCompletionResponse) -> Option<&str> {
    answer.choices[0].message.content.as_deref()
}

async fn stream() -> Outcome {
    let request = asked(&said("Hello"), json!({ "stream_options": { "include_usage": true } }))?;
    let mut chunks = client().chat().create_stream(request).await?;
    let (mut text, mut count, mut usage) = (String::new(), 0, None);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        count += 1;
        usage = chunk.usage.or(usage);
        for choice in chunk.choices {
            text += choice.delta.content.as_deref().unwrap_or("");
        }
    }
    equal(text.as_str(), GREETING, "text")?;
    done(format!("{count} chunks, usage {usage:?}"))
}

async fn tools() -> Outcome {
    let tool = json!({ "type": "function", "function": { "name": "get_weather", "parameters": city_schema(), "strict": true } });
    let mut messages = said("Weather in Paris?");
    let mut calls = 0;
    loop {
        let request = asked(&messages, json!({ "tools": [tool] }))?;
        let answer = client().chat().create(request).await?;
        let message = &answer.choices[0].message;
        let Some(wanted) = &message.tool_calls else {
            equal(text_of(&answer), Some(RESULT), "text")?;
            return done(format!("{calls} call, then a text"));
        };
        messages.push(serde_json::to_value(message)?);
        for call in wanted {
            let ChatCompletionMessageToolCalls::Function(call) = call else { return Err("a custom call".into()) };
            calls += 1;
            let arguments: City = serde_json::from_str(&call.function.arguments)?;
            equal(arguments.city.as_str(), "Paris", "city")?;
            messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": WEATHER }));
        }
    }
}

async fn structured() -> Outcome {
    let schema = json!({ "name": "person", "schema": person_schema(), "strict": true });
    let request = asked(&said("A person"), json!({ "response_format": { "type": "json_schema", "json_schema": schema } }))?;
    let answer = client().chat().create(request).await?;
    let person: Person = serde_json::from_str(text_of(&answer).unwrap_or(""))?;
    done(format!("{person:?}"))
}

async fn failure() -> Outcome {
    let request = asked(&said("Hello"), json!({ "model": NO_SUCH_MODEL }))?;
    match client().chat().create(request).await {
        Err(OpenAIError::ApiError(refused)) => {
            let found = (refused.status_code.as_u16(), refused.api_error.code.as_deref().unwrap_or(""));
            equal(found, (404, "model_not_found"), "error")?;
        }
        other => return Err(format!("expected ApiError, found {other:?}").into()),
    }
    let again = client().chat().create(asked(&said(&fails_once()), json!({}))?).await?;
    equal(text_of(&again), Some(GREETING), "text")?;
    done("ApiError 404 model_not_found; 503 was tried again")
}

async fn cancel() -> Outcome {
    let mut chunks = client().chat().create_stream(asked(&said(SLOWLY), json!({}))?).await?;
    while let Some(chunk) = chunks.next().await {
        if let Some(text) = chunk?.choices.first().and_then(|choice| choice.delta.content.clone()) {
            if !text.is_empty() {
                equal(text.as_str(), "Hello ", "first piece")?;
                drop(chunks);
                return done("dropped after the first piece");
            }
        }
    }
    Err("no piece came".into())
}

async fn reasoning() -> Outcome {
    Ok(Detail::Missing("its types have no reasoning_content, which is not a member of OpenAI's own answer".into()))
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
