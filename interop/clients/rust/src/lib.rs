//! What the client programs share: six scenarios against Truewire, one JSON line for each on standard output.
//!
//!     {"scenario": "stream", "ok": true, "detail": "..."}
//!
//! "ok" is null where the client has no such thing; "detail" then says why. The environment says where: TRUEWIRE_URL
//! (http://127.0.0.1:8080), TRUEWIRE_MODEL and TRUEWIRE_KEY. The model is ../../fixtures/scripted.ts, or one that answers like it.

use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error;
use std::fmt::Debug;

pub const GREETING: &str = "Hello from Truewire.";
pub const THOUGHT: &str = "Let me think.";
pub const SLOWLY: &str = "Slowly, please.";
pub const NO_SUCH_MODEL: &str = "no-such-model";
/// What the tool get_weather answers, and what the model says then.
pub const WEATHER: &str = "21 degrees";
pub const RESULT: &str = "The result is 21 degrees.";

pub fn url() -> String {
    environment("TRUEWIRE_URL", "http://127.0.0.1:8080")
}

pub fn model() -> String {
    environment("TRUEWIRE_MODEL", "scripted")
}

pub fn key() -> String {
    environment("TRUEWIRE_KEY", "none")
}

/// What a scenario found.
pub enum Detail {
    Done(String),
    /// The client has no such thing, and why.
    Missing(String),
}

pub type Outcome = Result<Detail, Box<dyn Error>>;

pub fn done(detail: impl Into<String>) -> Outcome {
    Ok(Detail::Done(detail.into()))
}

pub fn report(scenario: &str, outcome: Outcome) {
    let (ok, detail) = match outcome {
        Ok(Detail::Done(detail)) => (json!(true), detail),
        Ok(Detail::Missing(reason)) => (Value::Null, reason),
        Err(error) => (json!(false), error.to_string()),
    };
    println!("{}", json!({ "scenario": scenario, "ok": ok, "detail": detail }));
}

pub fn equal<T: PartialEq<U> + Debug, U: Debug>(found: T, expected: U, what: &str) -> Result<(), Box<dyn Error>> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

/// A text that gets status 503 the first time, and an answer the second time.
pub fn fails_once() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    format!("503 once: {}-{}", std::process::id(), now.as_nanos())
}

/// The value that the structured scenarios ask for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    pub name: String,
    pub age: u32,
    pub tags: Vec<String>,
}

pub fn person_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "age": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": false,
    })
}

/// The arguments of the tool get_weather.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct City {
    pub city: String,
}

pub fn city_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn environment(name: &str, otherwise: &str) -> String {
    std::env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.to_string())
}
