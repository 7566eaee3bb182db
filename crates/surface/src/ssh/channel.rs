//! A channel: one command (`exec`) or a shell: [`serve`].

use super::connection::{Connection, OpenChannel};
use super::terminal::{Key, MAX_LINE, Terminal};
use crate::Fabric;
use crate::fos::commands::{Console, Reply};
use crate::server::Bytes;
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time from the start of a channel to its command or shell.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Time after which a command without an answer of the fabric is given up.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Size of the parts of an output in bytes.
const PART: usize = 16 << 10;
/// Exit status of a session that ends by a hang-up.
const GONE: u8 = 129;

/// The client has ended the channel, or does not read.
struct Gone;

/// Next input of a client.
enum Input {
    Key(Key),
    /// The client has sent nothing for the idle time.
    Idle,
}

/// Serves a channel until it ends.
pub async fn serve(channel: Channel<Msg>, open: OpenChannel) {
    let connection = open.0.clone();
    let Some(console) = connection.console() else { return };
    let (mut read, write) = channel.split();
    let mut terminal = Terminal::default();
    let command = loop {
        match timeout(START_LIMIT, read.wait()).await {
            Ok(Some(ChannelMsg::RequestPty { .. })) => terminal.shows = true,
            Ok(Some(ChannelMsg::RequestShell { .. })) => break None,
            Ok(Some(ChannelMsg::Exec { command, .. })) => break Some(command),
            Ok(Some(ChannelMsg::Close) | None) | Err(_) => {
                let _ = timeout(connection.common.limits.write, write.close()).await;
                return;
            }
            Ok(Some(_)) => {}
        }
    };
    let console = Arc::new(Mutex::new(console));
    let mut talk = Talk { read, write, connection, console, terminal, input: Bytes::new(), is_ended: false };
    let status = match command {
        Some(command) => talk.command(&command).await,
        None => talk.shell().await,
    };
    talk.close(status.unwrap_or(GONE)).await;
    drop(open);
}

/// Conversation of a channel.
struct Talk {
    read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    connection: Arc<Connection>,
    console: Arc<Mutex<Console>>,
    terminal: Terminal,
    /// Input that has not been read.
    input: Bytes,
    /// No more input comes.
    is_ended: bool,
}

impl Talk {
    /// Runs one line. Returns its exit status.
    async fn command(&mut self, command: &[u8]) -> Result<u8, Gone> {
        let line = match std::str::from_utf8(command) {
            Ok(line) if command.len() <= MAX_LINE => line,
            Ok(_) => return self.refuse("The command is too long.").await,
            Err(_) => return self.refuse("The command is not UTF-8.").await,
        };
        // Lines of a command are commands, as in a shell.
        let mut reply = Reply::default();
        for line in line.lines() {
            reply = self.run(line).await?;
            while reply.asks {
                let answer = self.answer().await?;
                reply = self.run(&answer).await?;
            }
            if reply.ends {
                break;
            }
        }
        Ok(reply.status)
    }

    async fn refuse(&mut self, text: &str) -> Result<u8, Gone> {
        self.print(&format!("{text}\n")).await?;
        Ok(1)
    }

    /// Answer to a question; no answer is `no`.
    async fn answer(&mut self) -> Result<String, Gone> {
        match self.key().await? {
            Input::Key(Key::Line(line)) => Ok(line),
            Input::Key(_) | Input::Idle => Ok("no".to_owned()),
        }
    }

    /// Runs the lines of the client until it ends the session. Returns the last exit status.
    async fn shell(&mut self) -> Result<u8, Gone> {
        let is_interactive = self.terminal.shows;
        if is_interactive {
            let banner = self.connection.banner();
            self.print(&format!("{banner}\n")).await?;
        }
        let mut last = Reply::default();
        while !last.ends {
            if is_interactive && !last.asks {
                let prompt = self.console.lock().unwrap_or_else(PoisonError::into_inner).prompt();
                self.print(&prompt).await?;
            }
            match self.key().await? {
                Input::Key(Key::Line(line)) => last = self.run(&line).await?,
                Input::Key(Key::Interrupt) if last.asks => last = self.run("no").await?,
                Input::Key(Key::Interrupt) => {}
                Input::Key(Key::TooLong) => {
                    self.print("The line is too long.\n").await?;
                    last.status = 1;
                }
                Input::Key(Key::End) if last.asks => last = self.run("no").await?,
                Input::Key(Key::End) => break,
                Input::Idle => {
                    self.print("timed out waiting for input: auto-logout\n").await?;
                    break;
                }
            }
        }
        if is_interactive {
            self.print("logout\n").await?;
        }
        Ok(last.status)
    }

    /// Waits for the next line of the client, and shows it at a terminal.
    async fn key(&mut self) -> Result<Input, Gone> {
        let mut shown = Vec::new();
        loop {
            while !self.input.is_empty() {
                let byte = self.input.split_to(1)[0];
                if let Some(key) = self.terminal.take(byte, &mut shown) {
                    self.send(shown).await?;
                    return Ok(Input::Key(key));
                }
            }
            self.send(std::mem::take(&mut shown)).await?;
            if self.is_ended {
                return Ok(Input::Key(self.terminal.rest().map_or(Key::End, Key::Line)));
            }
            let message = match self.connection.idle() {
                None => self.read.wait().await,
                Some(idle) => match timeout(idle, self.read.wait()).await {
                    Ok(message) => message,
                    Err(_) => return Ok(Input::Idle),
                },
            };
            match message {
                Some(ChannelMsg::Data { data }) => self.input = data,
                Some(ChannelMsg::Eof) => self.is_ended = true,
                Some(ChannelMsg::Close) | None => return Err(Gone),
                Some(_) => {}
            }
        }
    }

    /// Runs a line at a worker thread and prints its output.
    async fn run(&mut self, line: &str) -> Result<Reply, Gone> {
        let (sender, receiver) = oneshot::channel();
        let (console, line, now) = (self.console.clone(), line.to_owned(), self.connection.now());
        let job = move |fabric: &mut dyn Fabric| {
            // A closed receiver means that the command has been given up.
            if !sender.is_closed() {
                let mut console = console.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = sender.send(console.line(now, &line, fabric));
            }
        };
        let failed = |text: &str| Reply { output: format!("{text}\n"), status: 1, ..Reply::default() };
        let reply = match self.connection.common.workers.submit(Box::new(job)) {
            false => failed("The switch is busy; try again."),
            true => match timeout(ANSWER_LIMIT, receiver).await {
                Ok(Ok(reply)) => reply,
                Ok(Err(_)) => failed("Internal error; see the log of the instance."),
                Err(_) => failed("The fabric does not answer; try again."),
            },
        };
        self.print(&reply.output).await?;
        Ok(reply)
    }

    /// Prints a text. Control characters of names do not reach the terminal.
    async fn print(&mut self, text: &str) -> Result<(), Gone> {
        let mut bytes = String::with_capacity(text.len() + text.len() / 32);
        for c in text.chars() {
            match c {
                '\n' if self.terminal.shows => bytes.push_str("\r\n"),
                '\n' | '\t' => bytes.push(c),
                c if c.is_control() => bytes.push('?'),
                c => bytes.push(c),
            }
        }
        self.send(bytes.into_bytes()).await
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            let part = bytes.split_to(bytes.len().min(PART));
            match timeout(self.connection.common.limits.write, self.write.data_bytes(part)).await {
                Ok(Ok(())) => {}
                _ => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Ends the channel.
    async fn close(&mut self, status: u8) {
        let end = async {
            let _ = self.write.exit_status(status.into()).await;
            let _ = self.write.eof().await;
            let _ = self.write.close().await;
        };
        let _ = timeout(self.connection.common.limits.write, end).await;
    }
}
