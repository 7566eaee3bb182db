//! Sessions of users: [`Sessions`]. A session is known by a random token of 256 bits.

use super::users::{Role, random_text};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// A user who has logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Name of the user.
    pub user: String,
    /// Permission of the user.
    pub role: Role,
    /// Identifier of a session that [`Sessions::open`] has opened, for the owner of a zone
    /// transaction; it is random, and no part of the token. Empty for a user without a session.
    pub id: String,
}

struct Open {
    token: Token,
    session: Session,
    used: Instant,
}

/// Secret of a session. Its debug form does not contain the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The secret, for the client that has logged in.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Open sessions of one surface.
pub struct Sessions {
    open: Mutex<Vec<Open>>,
    limit: usize,
    idle: Duration,
}

impl Sessions {
    /// At most `limit` sessions, each of which ends after `idle` without a request.
    pub fn new(limit: usize, idle: Duration) -> Sessions {
        Sessions { open: Mutex::default(), limit, idle }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|session| session.used.elapsed() < self.idle);
        open
    }

    /// Opens a session. Returns `None` if there are too many, or the system has no random numbers.
    pub fn open(&self, session: Session) -> Option<Token> {
        let token = Token(random_text::<32>().ok()?);
        let id = random_text::<16>().ok()?;
        let mut open = self.lock();
        if open.len() >= self.limit {
            return None;
        }
        let session = Session { id, ..session };
        open.push(Open { token: token.clone(), session, used: Instant::now() });
        Some(token)
    }

    /// Finds a session and resets its idle time. Every token is compared, in constant time.
    pub fn find(&self, secret: &str) -> Option<Session> {
        let mut open = self.lock();
        let at = position(&open, secret)?;
        open[at].used = Instant::now();
        Some(open[at].session.clone())
    }

    /// Ends a session. Returns false if there is none.
    pub fn close(&self, secret: &str) -> bool {
        let mut open = self.lock();
        position(&open, secret).map(|at| open.remove(at)).is_some()
    }
}

fn position(open: &[Open], secret: &str) -> Option<usize> {
    let mut found = None;
    for (at, session) in open.iter().enumerate() {
        if bool::from(session.token.0.as_bytes().ct_eq(secret.as_bytes())) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Session {
        Session { user: "ada".to_owned(), role: Role::View, id: String::new() }
    }

    #[test]
    fn a_session_ends_by_close_and_by_idle_time() {
        let sessions = Sessions::new(8, Duration::from_secs(60));
        let token = sessions.open(ada()).unwrap();
        let found = sessions.find(token.secret()).unwrap();
        assert!(found.id.len() == 32 && !token.secret().contains(&found.id), "{found:?}");
        assert_eq!(Session { id: String::new(), ..found }, ada());
        assert!(sessions.close(token.secret()) && !sessions.close(token.secret()));
        assert_eq!(sessions.find(token.secret()), None);
        let short = Sessions::new(8, Duration::ZERO);
        let token = short.open(ada()).unwrap();
        assert_eq!(short.find(token.secret()), None);
    }

    #[test]
    fn tokens_have_256_bits_and_no_debug_form() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        let [one, other] = [sessions.open(ada()).unwrap(), sessions.open(ada()).unwrap()];
        assert!(one != other && one.secret().len() == 64);
        assert_eq!(format!("{one:?}"), "Token(..)");
        assert!(sessions.open(ada()).is_none(), "the limit is reached");
    }
}
