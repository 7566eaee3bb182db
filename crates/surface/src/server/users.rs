//! Users and their roles: [`Users`].

use super::attempts::{Guard, Waiting};
use crate::Fabric;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Argon2, Params};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use sanloom_api::control::Request;
use sanloom_api::event_log::ClientEvent;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longest password that is hashed.
const MAX_PASSWORD: usize = 1_024;

/// Permission of a user. Each role includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Reads.
    View,
    /// Changes ports, zones, captures and injections.
    Operate,
    /// Changes everything, and ends the instance.
    Administer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::View, Role::Operate, Role::Administer];

    /// Role of a word, such as `operate`.
    pub fn from_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Word of the role.
    pub fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Operate => "operate",
            Role::Administer => "administer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Reason for a refused login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No user with this password.
    Invalid,
    /// Too many wrong passwords from this address.
    TooMany,
    /// Too many passwords wait to be hashed.
    Busy,
}

/// Place of a login, for the event log.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The switch; `None` for the whole instance.
    pub switch: Option<&'a str>,
    /// Interface, for example `REST`.
    pub interface: &'a str,
}

struct User {
    role: Role,
    /// Hash in the form of a PHC string.
    hash: String,
}

/// The user table.
pub struct Users {
    users: BTreeMap<String, User>,
    /// Comments of the file.
    comments: Vec<String>,
    /// Hash that is checked for an unknown name, so that the time does not tell which names exist.
    decoy: String,
    /// Key of the fingerprints of remembered passwords.
    key: [u8; 32],
    guard: Mutex<Guard>,
    /// Held while a password is hashed: one hash at a time bounds the memory.
    hashing: Mutex<()>,
}

/// Returns random bytes from the system.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let length = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if length == N { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns a random text of hexadecimal digits, with 8 bits for each of `N` bytes.
///
/// # Errors
/// As [`random`].
pub fn random_text<const N: usize>() -> io::Result<String> {
    Ok(random::<N>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Checks a password in a thread of its own, one after the other. The memory of the hash then
/// belongs to one pool of the allocator, not to one of each thread that waits. `None` without a
/// thread.
fn is_right(password: &str, expected: &str) -> Option<bool> {
    let verify = || Argon2::default().verify_password(password.as_bytes(), expected).is_ok();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("password".to_owned()).spawn_scoped(scope, verify).ok()?;
        thread.join().ok()
    })
}

fn hash(password: &str) -> io::Result<String> {
    let hasher = Argon2::from(&Params::DEFAULT);
    let hash: PasswordHash =
        hasher.hash_password_with_salt(password.as_bytes(), &random::<16>()?).map_err(io::Error::other)?;
    Ok(hash.to_string())
}

impl Users {
    /// An empty table.
    ///
    /// # Errors
    /// As [`random`].
    pub fn new() -> io::Result<Users> {
        Ok(Users {
            users: BTreeMap::new(),
            comments: Vec::new(),
            decoy: hash(&random_text::<16>()?)?,
            key: random()?,
            guard: Mutex::default(),
            hashing: Mutex::new(()),
        })
    }

    /// A table with the user `admin` and a random password, which is returned.
    ///
    /// # Errors
    /// As [`random`].
    pub fn with_random_password() -> io::Result<(Users, String)> {
        let mut users = Users::new()?;
        let password = random_text::<12>()?;
        users.set("admin", Role::Administer, &password)?;
        Ok((users, password))
    }

    /// Reads a table: one user in each line, as `NAME ROLE HASH`. The hash is a PHC string of
    /// argon2. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid.
    pub fn read(path: &Path) -> io::Result<Option<Users>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut users = Users::new()?;
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let valid = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => {
                    users.comments.push(line.to_owned());
                    continue;
                }
                [name, role, hash] => Role::from_word(role).zip(PasswordHash::new(hash).ok()).map(|(role, _)| {
                    users.users.insert(name.to_owned(), User { role, hash: hash.to_owned() });
                }),
                _ => None,
            };
            if valid.is_none() {
                let (path, number) = (path.display(), number + 1);
                let text = format!(
                    "{path}:{number}: the line is no user; write it as NAME ROLE HASH, with the role view, operate or administer"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        Ok(Some(users))
    }

    /// Writes the table, readable by its owner only. Comments come first. A file that root writes
    /// gets the owner of the old file, or of the folder, so that a service can read it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        let written = self.write_new(&new, path).and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Writes a file that will replace the one at `path`.
    fn write_new(&self, new: &Path, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        if geteuid().is_root() {
            let owner = fs::metadata(path).or_else(|_| fs::metadata(path.parent().unwrap_or(path)))?;
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        for line in &self.comments {
            writeln!(file, "{line}")?;
        }
        for (name, User { role, hash }) in &self.users {
            writeln!(file, "{name} {role} {hash}")?;
        }
        file.sync_all()
    }

    /// Adds or changes a user.
    ///
    /// # Errors
    /// The name or the password is not valid.
    pub fn set(&mut self, name: &str, role: Role, password: &str) -> io::Result<()> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text);
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
            return Err(invalid("a user name has 1 to 64 letters, digits and the characters . _ - @"));
        }
        if password.len() < 8 || password.len() > MAX_PASSWORD {
            return Err(invalid("a password has 8 to 1024 bytes"));
        }
        self.users.insert(name.to_owned(), User { role, hash: hash(password)? });
        self.lock().forget();
        Ok(())
    }

    /// Changes the role of a user. Returns false if there is none.
    pub fn set_role(&mut self, name: &str, role: Role) -> bool {
        self.lock().forget();
        self.users.get_mut(name).map(|user| user.role = role).is_some()
    }

    /// Removes a user. Returns false if there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        self.lock().forget();
        self.users.remove(name).is_some()
    }

    /// Names and roles.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Role)> {
        self.users.iter().map(|(name, user)| (&**name, user.role))
    }

    /// True if nobody can log in.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Guard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a password and returns the role of the user. It hashes the password, which takes a
    /// part of a second, unless the same password was right a short time ago.
    ///
    /// # Errors
    /// The password is wrong, or the address has sent too many wrong ones.
    pub fn check(&self, from: IpAddr, name: &str, password: &str) -> Result<Role, Refused> {
        let fingerprint = self.fingerprint(name, password);
        if let Some(role) = self.lock().recall(&fingerprint) {
            return Ok(role);
        }
        if self.lock().is_blocked(from) {
            return Err(Refused::TooMany);
        }
        if password.len() > MAX_PASSWORD {
            self.lock().count_failure(from);
            return Err(Refused::Invalid);
        }
        let _place = Waiting::enter(&self.guard, from).ok_or(Refused::Busy)?;
        let _hashing = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests before this one may have had the same password, or wrong ones.
        if let Some(role) = self.lock().recall(&fingerprint) {
            return Ok(role);
        }
        if self.lock().is_blocked(from) {
            return Err(Refused::TooMany);
        }
        let user = self.users.get(name);
        let expected = user.map_or(&self.decoy, |user| &user.hash);
        let is_right = is_right(password, expected).ok_or(Refused::Busy)?;
        match user.filter(|_| is_right) {
            Some(user) => {
                let mut guard = self.lock();
                guard.remember(fingerprint, user.role);
                guard.prove(from);
                Ok(user.role)
            }
            None => {
                self.lock().count_failure(from);
                Err(Refused::Invalid)
            }
        }
    }

    /// As [`check`](Users::check). A wrong password becomes an event of the log. A refusal of an
    /// address with too many is none, so the limit of wrong passwords also bounds the events.
    ///
    /// # Errors
    /// As [`check`](Users::check).
    pub fn check_at(
        &self,
        fabric: &mut dyn Fabric,
        place: &Place<'_>,
        from: IpAddr,
        name: &str,
        password: &str,
    ) -> Result<Role, Refused> {
        let checked = self.check(from, name, password);
        if checked == Err(Refused::Invalid) {
            let [user, address, interface] = [name, &from.to_string(), place.interface].map(str::to_owned);
            let event = ClientEvent::LoginFailed { user, address, interface };
            // The refusal does not depend on the log.
            let _ = fabric.ask(Request::Log { switch: place.switch.map(str::to_owned), event });
        }
        checked
    }

    fn fingerprint(&self, name: &str, password: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        hasher.update((name.len() as u64).to_be_bytes());
        hasher.update(name);
        hasher.update(password);
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::attempts::{MAX_FAILURES, MAX_PROVEN, MAX_WAITING};
    use std::net::Ipv6Addr;
    use std::os::unix::fs::chown;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_stored_table_accepts_its_passwords_and_holds_none_of_them() {
        let path = std::env::temp_dir().join(format!("sanloom-users-{}", std::process::id()));
        assert!(Users::read(&path).unwrap().is_none());
        let mut users = Users::new().unwrap();
        users.set("ada", Role::Operate, "correct horse").unwrap();
        users.write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("ada operate $argon2id$") && !text.contains("horse"), "{text}");
        let read = Users::read(&path).unwrap().unwrap();
        assert_eq!(read.check(HERE, "ada", "correct horse"), Ok(Role::Operate));
        assert_eq!(read.check(HERE, "ada", "correct horsf"), Err(Refused::Invalid));
        assert_eq!(read.check(HERE, "bob", "correct horse"), Err(Refused::Invalid));
        fs::write(&path, format!("# of the page\n{text}")).unwrap();
        let mut read = Users::read(&path).unwrap().unwrap();
        assert!(read.set_role("ada", Role::View) && !read.set_role("bob", Role::View));
        read.write(&path).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with("# of the page\nada view $argon2id$"));
        fs::write(&path, "ada root x\n").unwrap();
        let error = Users::read(&path).err().unwrap().to_string();
        assert!(error.contains(":1: the line is no user"), "{error}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_table_that_root_writes_belongs_to_the_owner_of_its_folder_or_of_the_old_file() {
        let folder = std::env::temp_dir().join(format!("sanloom-owner-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, users) = (folder.join("users"), Users::new().unwrap());
        let own = geteuid().as_raw();
        let [of_folder, of_file] = if own == 0 { [12_345, 54_321] } else { [own, own] };
        let owner = || fs::metadata(&path).unwrap().uid();
        chown(&folder, Some(of_folder), None).unwrap();
        users.write(&path).unwrap();
        assert_eq!(owner(), of_folder);
        chown(&path, Some(of_file), None).unwrap();
        users.write(&path).unwrap();
        assert_eq!(owner(), of_file);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_flood_of_wrong_passwords_is_refused_without_hashing_and_others_still_log_in() {
        let (users, password) = Users::with_random_password().unwrap();
        assert_eq!(password.len(), 24);
        assert_eq!(users.check(HERE, "admin", &password), Ok(Role::Administer));
        for _ in 0..MAX_FAILURES {
            assert_eq!(users.check(HERE, "admin", "guess"), Err(Refused::Invalid));
        }
        for _ in 0..1000 {
            assert_eq!(users.check(HERE, "admin", "guess"), Err(Refused::TooMany));
        }
        // The password that was right before, and another address.
        assert_eq!(users.check(HERE, "admin", &password), Ok(Role::Administer));
        assert_eq!(users.check("127.0.0.2".parse().unwrap(), "admin", "guess"), Err(Refused::Invalid));
    }

    #[test]
    fn long_passwords_and_addresses_of_one_network_count_as_wrong_passwords() {
        let mut users = Users::new().unwrap();
        users.set("ada", Role::View, "correct horse").unwrap();
        let long = "a".repeat(MAX_PASSWORD + 1);
        for number in 0..MAX_FAILURES {
            let from = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)));
            assert_eq!(users.check(from, &format!("u{number}"), &long), Err(Refused::Invalid));
        }
        let another = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | 0xffff));
        assert_eq!(users.check(another, "ada", &long), Err(Refused::TooMany));
        assert_eq!(users.check(another, "ada", "correct horse"), Err(Refused::TooMany));
        let elsewhere = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db9 << 96));
        assert_eq!(users.check(elsewhere, "ada", "correct horse"), Ok(Role::View));
    }

    #[test]
    fn a_flood_from_many_addresses_occupies_few_threads_and_the_others_are_refused_at_once() {
        let (users, password) = Users::with_random_password().unwrap();
        assert_eq!(users.check(HERE, "admin", &password), Ok(Role::Administer));
        for address in 50..50 + MAX_FAILURES as u8 {
            assert_eq!(users.check(IpAddr::from([10, 0, 0, address]), "admin", "guess"), Err(Refused::Invalid));
        }
        // No password is hashed while the test holds the lock.
        let held = users.hashing.lock().unwrap();
        std::thread::scope(|scope| {
            let guess = |address: u8| {
                let users = &users;
                scope.spawn(move || users.check(IpAddr::from([10, 0, 0, address]), "admin", "guess"))
            };
            let waiting: Vec<_> = (0..MAX_WAITING as u8).map(guess).collect();
            await_waiting(&users, MAX_WAITING);
            for address in 100..200 {
                assert_eq!(users.check(IpAddr::from([10, 0, 0, address]), "eve", "guess"), Err(Refused::Busy));
            }
            assert_eq!(users.check(HERE, "admin", &password), Ok(Role::Administer), "a known password is not hashed");
            drop(held);
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), Err(Refused::Invalid));
            }
        });
        assert_eq!(
            users.check(IpAddr::from([10, 0, 0, 250]), "eve", "guess"),
            Err(Refused::Invalid),
            "a place is free"
        );
        assert_eq!(
            users.lock().failures.len(),
            MAX_FAILURES as usize + MAX_WAITING + 1,
            "a refusal without a hash counts no failure"
        );
    }

    /// Waits until this number of passwords is in the queue.
    fn await_waiting(users: &Users, number: usize) {
        while users.lock().waiting.values().sum::<usize>() < number {
            std::thread::yield_now();
        }
    }

    #[test]
    fn networks_of_one_attacker_share_a_place_and_an_address_with_a_right_password_has_its_own() {
        let (mut users, password) = Users::with_random_password().unwrap();
        users.set("bob", Role::View, "correct horse").unwrap();
        // Network of 64 bits `subnet` of the site `site`, a network of 48 bits.
        let from = |site: u128, subnet: u128| {
            IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | site << 80 | subnet << 64 | 1))
        };
        let (known, stranger) = (from(0xaaaa, 0), from(0xbbbb, 0));
        assert_eq!(users.check(known, "admin", &password), Ok(Role::Administer));
        // Each network sends less wrong passwords than the limit, and all together send more.
        for subnet in 0..u128::from(MAX_FAILURES) {
            assert_eq!(users.check(from(1, subnet), "admin", "guess"), Err(Refused::Invalid));
        }
        let held = users.hashing.lock().unwrap();
        std::thread::scope(|scope| {
            let start = |from: IpAddr, name: &'static str, password: &'static str, number: usize| {
                let users = &users;
                let thread = scope.spawn(move || users.check(from, name, password));
                await_waiting(users, number);
                thread
            };
            let first = start(from(1, 100), "admin", "guess", 1);
            for subnet in 101..400 {
                assert_eq!(users.check(from(1, subnet), "admin", "guess"), Err(Refused::Busy), "{subnet}");
            }
            // Another site finds a place, and the right password.
            let other = start(stranger, "bob", "correct horse", 2);
            // Three sites together fill the queue. An address that is known has a place even so.
            let third = start(from(3, 0), "admin", "guess", 3);
            assert_eq!(users.check(from(4, 0), "bob", "correct horse"), Err(Refused::Busy));
            let own = start(known, "bob", "wrong horse", 4);
            assert_eq!(users.check(known, "bob", "correct horse"), Err(Refused::Busy), "one place for each");
            drop(held);
            assert_eq!(other.join().unwrap(), Ok(Role::View));
            for thread in [first, third, own] {
                assert_eq!(thread.join().unwrap(), Err(Refused::Invalid));
            }
        });
        assert!(users.lock().waiting.is_empty());
        for number in 0..2 * MAX_PROVEN as u128 {
            users.lock().prove(from(number, 0));
        }
        assert_eq!(users.lock().proven.len(), MAX_PROVEN);
    }

    #[test]
    fn each_role_includes_those_before_it() {
        assert!(Role::View < Role::Operate && Role::Operate < Role::Administer);
        assert!(Role::ALL.iter().all(|role| Role::from_word(role.word()) == Some(*role)));
    }
}
