//! Messages of the interface: [`answer`].
//!
//! A message is an object `ins_api`, or one or several calls of JSON-RPC 2.0.

use super::commands::{Permitted, is_show, run, split_line};
use super::reply::{Outcome, Problem, Shown};
use super::session::Session;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Maximum number of commands of a message.
pub const MAX_COMMANDS: usize = 1_000;
/// Maximum number of commands of a message that show something. Each may cost as much as a table of
/// the whole fabric.
const MAX_SHOWS: usize = 64;
/// Maximum size of all outputs of a message in bytes.
const MAX_OUTPUT: usize = 64 << 20;

/// Time after which no further command of a message is run. A message occupies a thread that serves
/// other clients, too.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Size of the outputs so far.
struct Budget(usize);

impl Budget {
    /// Counts an output; too long an output is dropped.
    fn take(&mut self, outcome: Outcome) -> Outcome {
        let shown = outcome?;
        // Values take several times the room of their text.
        let size = shown.text.len() * if shown.body.is_some() { 4 } else { 1 };
        self.0 = self.0.saturating_add(size);
        if self.0 > MAX_OUTPUT { Err(Problem::TooLong) } else { Ok(shown) }
    }
}

/// Answers a message. `is_rpc` is the encoding that the client names.
pub fn answer(session: &mut Session<'_>, body: &[u8], is_rpc: bool) -> Value {
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    let Ok(message) = parsed else {
        return match is_rpc {
            true => rpc_error(&Value::Null, -32_700, "Parse error", "the body is not JSON\n"),
            false => refused("", &Value::Null, "400", "Request message is invalid"),
        };
    };
    match message.get("ins_api") {
        Some(ins_api) => ins(session, ins_api),
        None if is_rpc || message.get("jsonrpc").is_some() || message.is_array() => rpc(session, &message),
        None => refused("", &Value::Null, "400", "Request message is invalid"),
    }
}

fn envelope(kind: &str, version: &Value, outputs: Value) -> Value {
    let version = if version.is_string() { version.clone() } else { "1.0".into() };
    json!({"ins_api": {"type": kind, "version": version, "sid": "eoc", "outputs": {"output": outputs}}})
}

/// Answer to a message that is refused as a whole.
fn refused(kind: &str, version: &Value, code: &str, text: &str) -> Value {
    envelope(kind, version, json!({"input": "", "code": code, "msg": text, "clierror": format!("{text}\n")}))
}

fn ins(session: &mut Session<'_>, message: &Value) -> Value {
    let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, input, chunk) = (text("type"), text("input"), text("chunk"));
    let version = message.get("version").unwrap_or(&Value::Null);
    let format = text("output_format");
    if !format.is_empty() && format != "json" {
        return refused(kind, version, "400", "Request message is invalid");
    }
    let commands = split_line(input);
    let permitted = match kind {
        "cli_show" | "cli_show_ascii" | "cli_show_array" => Permitted::Show,
        "cli_conf" => Permitted::Changes,
        "bash" => return refused(kind, version, "501", "Unsupported message type"),
        _ => return refused(kind, version, "400", "Request message is invalid"),
    };
    match (commands.len(), chunk) {
        (0, _) => return refused(kind, version, "400", "No input command"),
        (2.., "1") => return refused(kind, version, "400", "Chunking honors only one command"),
        (count, _) if count > MAX_COMMANDS => {
            return refused(kind, version, "413", "Maximum number of commands exceeded");
        }
        (count, _) if count > MAX_SHOWS && permitted == Permitted::Show => {
            return refused(kind, version, "413", "Maximum number of concurrent show commands exceeded");
        }
        _ => {}
    }
    let is_text = kind != "cli_show" && kind != "cli_show_array";
    let (mut outputs, mut budget) = (Vec::new(), Budget(0));
    let mut changed = None;
    let begun = Instant::now();
    for (at, command) in commands.iter().enumerate() {
        if begun.elapsed() > MAX_TIME {
            outputs.push(output(command, kind, Err(Problem::Late)));
            break;
        }
        let outcome = budget.take(run(session, command, permitted, is_text));
        let ends = outcome.is_err() && (permitted == Permitted::Changes || outcome == Err(Problem::TooLong));
        changed = if outcome.is_ok() { Some(at) } else { changed };
        outputs.push(output(command, kind, outcome));
        if ends {
            break;
        }
    }
    // Changes of the basic mode come into force here, also those before a failure.
    if let Err(problem) = session.commit_touched()
        && let Some(at) = changed
    {
        outputs[at] = output(commands[at], kind, Err(problem));
    }
    let outputs = if outputs.len() == 1 { outputs.remove(0) } else { Value::Array(outputs) };
    envelope(kind, version, outputs)
}

fn output(command: &str, kind: &str, outcome: Outcome) -> Value {
    let shown =
        |code: &str, text: &str, body: Value| json!({"input": command, "code": code, "msg": text, "body": body});
    match outcome {
        Ok(Shown { text, .. }) if kind == "cli_show_ascii" => shown("200", "Success", text.into()),
        Ok(Shown { text, .. }) if kind == "cli_conf" => {
            let body = if text.is_empty() { json!({}) } else { text.into() };
            shown("200", "Success", body)
        }
        Ok(Shown { body: Some(body), .. }) => shown("200", "Success", body),
        // A command without an output, such as `terminal dont-ask`.
        Ok(Shown { text, body: None }) if text.is_empty() => shown("200", "Success", json!({})),
        Ok(_) => output(command, kind, Err(Problem::Unstructured)),
        Err(problem) => {
            let (code, text) = problem.code();
            let mut values = Map::new();
            values.insert("input".to_owned(), command.into());
            values.insert("code".to_owned(), code.into());
            values.insert("msg".to_owned(), text.into());
            let error = problem.text();
            if !error.is_empty() {
                values.insert("clierror".to_owned(), error.into());
            }
            Value::Object(values)
        }
    }
}

fn rpc_error(id: &Value, code: i64, text: &str, detail: &str) -> Value {
    json!({"jsonrpc": "2.0", "error": {"code": code, "message": text, "data": {"msg": detail}}, "id": id})
}

fn rpc(session: &mut Session<'_>, message: &Value) -> Value {
    let single = std::slice::from_ref(message);
    let calls = message.as_array().map_or(single, Vec::as_slice);
    if calls.is_empty() {
        return rpc_error(&Value::Null, -32_600, "Invalid request", "the list has no call\n");
    }
    if calls.len() > MAX_COMMANDS {
        return rpc_error(&Value::Null, -32_603, "Internal error", "Maximum number of commands exceeded\n");
    }
    let (mut answers, mut budget) = (Vec::new(), Budget(0));
    let (mut commands, mut shows) = (0, 0);
    // After a failed or malformed call, no later change of the message is made.
    let mut has_failed = false;
    // Place and id of the last successful change, whose answer has the result of the commit.
    let mut changed = None;
    let begun = Instant::now();
    for call in calls {
        let id = call.get("id").filter(|id| id.is_number() || id.is_string()).cloned().unwrap_or(Value::Null);
        let line = call.pointer("/params/cmd").and_then(Value::as_str);
        let method = call.get("method").and_then(Value::as_str);
        let (Some(line), Some(method)) = (line, method) else {
            answers.push(rpc_error(&id, -32_600, "Invalid request", "a call has method, params.cmd and id\n"));
            has_failed = true;
            continue;
        };
        let is_text = match method {
            "cli" => false,
            "cli_ascii" => true,
            _ => {
                answers.push(rpc_error(&id, -32_601, "Method not found", "the methods are cli and cli_ascii\n"));
                has_failed = true;
                continue;
            }
        };
        let lines = split_line(line);
        commands += lines.len();
        shows += lines.iter().filter(|line| is_show(line)).count();
        if commands > MAX_COMMANDS || shows > MAX_SHOWS {
            answers.push(rpc_error(&id, -32_603, "Internal error", "Maximum number of commands exceeded\n"));
            break;
        }
        let is_change = lines.iter().any(|line| !is_show(line));
        if is_change && has_failed {
            answers.push(rpc_error(&id, -32_603, "Internal error", "not executed after an earlier error\n"));
            continue;
        }
        let mut outcome = calls_of(session, &lines, is_text, begun);
        if is_change && outcome.is_ok() {
            changed = Some((answers.len(), id.clone()));
        }
        has_failed |= outcome.is_err();
        outcome = budget.take(outcome);
        let is_over = matches!(outcome, Err(Problem::TooLong | Problem::Late));
        answers.push(match outcome {
            Ok(shown) => json!({"jsonrpc": "2.0", "result": result(shown, is_text, is_change), "id": id}),
            Err(problem) => rpc_problem(&id, &problem),
        });
        if is_over {
            break;
        }
    }
    if let Err(problem) = session.commit_touched()
        && let Some((at, id)) = changed
    {
        answers[at] = rpc_problem(&id, &problem);
    }
    if answers.len() == 1 { answers.remove(0) } else { Value::Array(answers) }
}

fn rpc_problem(id: &Value, problem: &Problem) -> Value {
    if matches!(problem, Problem::Busy | Problem::Late) {
        return rpc_error(id, -32_603, "Internal error", &problem.text());
    }
    let (text, (_, code)) = (problem.text(), problem.code());
    rpc_error(id, -32_602, "Invalid params", if text.is_empty() { code } else { &text })
}

/// Runs the commands of one call. Several commands have one text. `begun` is the start of the
/// message.
fn calls_of(session: &mut Session<'_>, lines: &[&str], is_text: bool, begun: Instant) -> Outcome {
    let [lines @ .., last] = lines else { return Err(Problem::Syntax("% Invalid command\n".to_owned())) };
    let mut text = String::new();
    let mut run = |line: &str| match begun.elapsed() > MAX_TIME {
        true => Err(Problem::Late),
        false => run(session, line, Permitted::All, is_text),
    };
    for line in lines {
        text += &run(line)?.text;
    }
    let shown = run(last)?;
    match lines.is_empty() {
        true => Ok(shown),
        false => Ok(Shown::text(text + &shown.text)),
    }
}

fn result(shown: Shown, is_text: bool, is_change: bool) -> Value {
    match shown.body.filter(|_| !is_text) {
        Some(body) => json!({ "body": body }),
        None if is_change && shown.text.is_empty() => Value::Null,
        None => json!({"msg": shown.text}),
    }
}
