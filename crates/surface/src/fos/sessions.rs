//! Sessions of the management interface: [`Sessions`].

use super::room::Who;
use crate::server::users::random_text;
use std::io;
use std::time::Duration;
use subtle::ConstantTimeEq;

struct Session {
    token: String,
    who: Who,
    used: Duration,
}

/// The sessions of one address.
#[derive(Default)]
pub struct Sessions {
    sessions: Vec<Session>,
    /// Number of sessions since the start.
    count: u64,
}

impl Sessions {
    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Adds a session and returns its token.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn add(&mut self, now: Duration, switch: &str, who: Who) -> io::Result<String> {
        let token = random_text::<20>()?;
        self.count += 1;
        let who = Who { session: format!("{switch}/rest/{}", self.count), ..who };
        self.sessions.push(Session { token: token.clone(), who, used: now });
        Ok(token)
    }

    fn position(&self, token: &str) -> Option<usize> {
        let mut found = None;
        for (index, session) in self.sessions.iter().enumerate() {
            if bool::from(session.token.as_bytes().ct_eq(token.trim().as_bytes())) {
                found = Some(index);
            }
        }
        found
    }

    /// Returns the owner of a session, and renews the session.
    pub fn find(&mut self, now: Duration, token: &str) -> Option<Who> {
        let index = self.position(token)?;
        self.sessions[index].used = now;
        Some(self.sessions[index].who.clone())
    }

    /// Ends a session.
    pub fn remove(&mut self, token: &str) -> Option<Who> {
        self.position(token).map(|index| self.sessions.remove(index).who)
    }

    /// Ends the sessions that were not used for longer than `limit`.
    pub fn expire(&mut self, now: Duration, limit: Duration) -> Vec<Who> {
        let late = |session: &Session| now.saturating_sub(session.used) >= limit;
        self.sessions.extract_if(.., |session| late(session)).map(|session| session.who).collect()
    }
}
