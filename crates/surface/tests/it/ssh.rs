//! The SSH server with a client of the same library, and with hostile ones.

use proptest::prelude::*;
use russh::client::{self, AuthResult, Handle, Handler};
use russh::keys::{Algorithm, EcdsaCurve};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{Channel, ChannelMsg, Disconnect, Error, Preferred, kex};
use sanloom_api::control::{Answer, Request};
use sanloom_surface::fos::commands::Console;
use sanloom_surface::fos::{Now, Shared};
use sanloom_surface::server::Peer;
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::ssh::{
    Access, Key, Limits, Listen, MAX_LINE, MAX_SESSIONS, Server, Terminal, UserKeys, host_key, host_keys,
};
use sanloom_surface::{Busy, Fabric};
use std::fs;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A fabric that takes no request.
struct Nothing;

impl Fabric for Nothing {
    fn ask(&mut self, _: Request) -> Result<Answer, Busy> {
        Err(Busy)
    }
}

struct Lab {
    server: Server,
    folder: PathBuf,
    shared: Shared,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const PASSWORD: &str = "correct horse";

impl Lab {
    /// A server with the users `admin` and `guest`; `admin` has a key, too.
    fn start(name: &str, limits: Limits) -> Lab {
        let folder = std::env::temp_dir().join(format!("sanloom-ssh-{name}-{}", std::process::id()));
        let mut users = Users::new().unwrap();
        users.set("admin", Role::Administer, PASSWORD).unwrap();
        users.set("guest", Role::View, PASSWORD).unwrap();
        let client_key = host_key(&folder.join("client")).unwrap();
        let keys = folder.join("ssh-keys");
        fs::write(&keys, format!("admin {}\n", client_key.public_key().to_openssh().unwrap())).unwrap();
        let access = Access {
            users: Arc::new(users),
            keys: UserKeys::read(&keys).unwrap(),
            host_keys: host_keys(&folder).unwrap(),
        };
        let shared = Shared::default();
        let listen =
            Listen { address: "127.0.0.1:0".parse().unwrap(), switch: "sw1".to_owned(), shared: shared.clone() };
        let server = Server::start_with(vec![listen], access, limits, || Box::new(Nothing)).unwrap();
        Lab { server, folder, shared }
    }

    fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    async fn connect(&self) -> Result<Handle<Trusting>, Error> {
        let config = client::Config { inactivity_timeout: Some(Duration::from_secs(60)), ..Default::default() };
        client::connect(Arc::new(config), self.address(), Trusting).await
    }

    async fn login(&self, user: &str) -> Handle<Trusting> {
        let mut handle = self.connect().await.unwrap();
        assert!(handle.authenticate_password(user, PASSWORD).await.unwrap().success());
        handle
    }
}

struct Trusting;

impl Handler for Trusting {
    type Error = Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, Error> {
        Ok(true)
    }
}

fn quick() -> Limits {
    Limits { rejection: Duration::from_millis(1), ..Limits::default() }
}

fn run<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// Runs a command. Returns its output and exit status.
async fn exec(handle: &Handle<Trusting>, command: &str) -> (String, Option<u32>) {
    let channel = handle.channel_open_session().await.unwrap();
    channel.exec(true, command).await.unwrap();
    rest(channel).await
}

/// Everything that a channel sends before it ends.
async fn rest(mut channel: Channel<client::Msg>) -> (String, Option<u32>) {
    let (mut output, mut status) = (Vec::new(), None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => output.extend(&data[..]),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    (String::from_utf8(output).unwrap(), status)
}

#[test]
fn commands_run_by_exec_and_in_a_shell_with_password_and_with_key() {
    let lab = Lab::start("commands", quick());
    run(async {
        let handle = lab.login("admin").await;
        let (output, status) = exec(&handle, "version; sensorshow").await;
        assert!(output.contains("\nFabric OS:  v9.1.1\n"), "{output}");
        assert_eq!(status, Some(0));
        assert_eq!(exec(&handle, "reboot").await, ("rbash: reboot: command not found\n".to_owned(), Some(127)));
        assert_eq!(exec(&handle, "switchshow").await.1, Some(1));
        // A question without an answer is answered by no, and one with an answer goes on.
        let (output, _) = {
            let channel = handle.channel_open_session().await.unwrap();
            channel.exec(true, "cfgsave").await.unwrap();
            channel.eof().await.unwrap();
            rest(channel).await
        };
        assert!(output.ends_with("[no] Operation cancelled.\n"), "{output}");
        let channel = handle.channel_open_session().await.unwrap();
        channel.exec(true, "cfgsave").await.unwrap();
        channel.data_bytes(&b"y\n"[..]).await.unwrap();
        let (output, status) = rest(channel).await;
        assert!(output.ends_with("[no] Service Unavailable\n") && status == Some(1), "{output}");

        let mut other = lab.connect().await.unwrap();
        let key = Arc::new(host_key(&lab.folder.join("client")).unwrap());
        let as_guest = PrivateKeyWithHashAlg::new(key.clone(), None);
        assert!(!other.authenticate_publickey("guest", as_guest).await.unwrap().success());
        let as_admin = PrivateKeyWithHashAlg::new(key, None);
        assert!(other.authenticate_publickey("admin", as_admin).await.unwrap().success());
        let channel = other.channel_open_session().await.unwrap();
        channel.request_pty(true, "vt100", 80, 24, 0, 0, &[]).await.unwrap();
        channel.request_shell(true).await.unwrap();
        channel.data_bytes(&b"sensors\x7fshow\rnothing\rexit\r"[..]).await.unwrap();
        let (output, status) = rest(channel).await;
        let expected = "sanloom: switch sw1 of a laboratory\r\nsw1:FID128:admin> sensors\u{8} \u{8}show\r\n\
                        sw1:FID128:admin> nothing\r\nrbash: nothing: command not found\r\n\
                        sw1:FID128:admin> exit\r\nlogout\r\n";
        assert_eq!((&*output, status), (expected, Some(0)));
        // Without a terminal there is neither prompt nor echo.
        let channel = other.channel_open_session().await.unwrap();
        channel.request_shell(true).await.unwrap();
        channel.data_bytes(&b"nothing\nversion"[..]).await.unwrap();
        channel.eof().await.unwrap();
        let (output, status) = rest(channel).await;
        assert!(output.starts_with("rbash: nothing: command not found\nKernel: ") && status == Some(0), "{output}");
    });
}

#[test]
fn older_clients_agree_on_a_curve_of_nist_and_an_ecdsa_key() {
    let lab = Lab::start("older", quick());
    run(async {
        for (kex, key) in [
            (kex::ECDH_SHA2_NISTP256, Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 }),
            (kex::CURVE25519, Algorithm::Ed25519),
        ] {
            let preferred = Preferred { kex: vec![kex].into(), key: vec![key].into(), ..Preferred::DEFAULT };
            let config = Arc::new(client::Config { preferred, ..Default::default() });
            let mut handle = client::connect(config, lab.address(), Trusting).await.unwrap();
            assert!(handle.authenticate_password("admin", PASSWORD).await.unwrap().success());
            assert_eq!(exec(&handle, "sensorshow").await, (String::new(), Some(0)));
        }
    });
}

#[test]
fn a_user_with_the_role_view_reads_only() {
    let lab = Lab::start("roles", quick());
    run(async {
        let handle = lab.login("guest").await;
        assert_eq!(exec(&handle, "version").await.1, Some(0));
        for command in
            ["switchdisable", "switchenable", "cfgclear", "portdisable 1", "switchname x", "cfgsave -f", "timeout 5"]
        {
            assert_eq!(exec(&handle, command).await, ("RBAC permission denied.\n".to_owned(), Some(1)), "{command}");
        }
    });
}

#[test]
fn wrong_passwords_end_a_connection_and_do_not_exclude_the_right_one() {
    let lab = Lab::start("passwords", quick());
    run(async {
        let first = lab.login("admin").await;
        for _ in 0..6 {
            let mut guessing = lab.connect().await.unwrap();
            let mut attempts = 0;
            while let Ok(AuthResult::Failure { .. }) = guessing.authenticate_password("admin", "guess").await {
                attempts += 1;
                assert!(attempts <= 7, "the connection goes on");
            }
        }
        // The flood has used up the attempts of the address; the password that was right is known.
        let second = lab.login("admin").await;
        for handle in [first, second] {
            assert_eq!(exec(&handle, "sensorshow").await, (String::new(), Some(0)));
        }
        let mut none = lab.connect().await.unwrap();
        assert!(!none.authenticate_none("admin").await.unwrap().success());
        assert!(none.channel_open_session().await.is_err());
    });
}

#[test]
fn forwarding_and_subsystems_are_refused() {
    let lab = Lab::start("forwarding", quick());
    run(async {
        let handle = lab.login("admin").await;
        assert!(handle.channel_open_direct_tcpip("127.0.0.1", 22, "127.0.0.1", 1).await.is_err());
        assert!(handle.channel_open_direct_streamlocal("/tmp/x").await.is_err());
        assert!(handle.tcpip_forward("127.0.0.1", 0).await.is_err());
        let mut channel = handle.channel_open_session().await.unwrap();
        channel.request_subsystem(true, "sftp").await.unwrap();
        assert!(matches!(channel.wait().await, Some(ChannelMsg::Failure)));
        assert_eq!(exec(&handle, "sensorshow").await.1, Some(0));
    });
}

/// Reads until the server ends the connection.
fn is_ended(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let end = stream.read_to_end(&mut Vec::new());
    !end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn garbage_and_half_open_connections_do_not_exclude_users() {
    let lab = Lab::start("half-open", Limits { login: Duration::from_secs(2), ..quick() });
    let connect = || TcpStream::connect(lab.address()).unwrap();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b"SSH-1.5-old\r\n", &[b'x'; 100_000]] {
        let mut stream = connect();
        let _ = stream.write_all(garbage);
        assert!(is_ended(&mut stream));
    }
    // A length of a packet that cannot be.
    let mut stream = connect();
    stream.write_all(b"SSH-2.0-x\r\n\xff\xff\xff\xff\x00\x00\x00\x00").unwrap();
    assert!(is_ended(&mut stream));
    let mut half: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = connect();
            if number % 2 == 0 {
                stream.write_all(b"SSH-2.0-slow\r\n").unwrap();
            }
            stream
        })
        .collect();
    run(async {
        let handle = lab.login("admin").await;
        assert_eq!(exec(&handle, "sensorshow").await, (String::new(), Some(0)));
    });
    // The oldest of them ended when more came, the others by their time limit.
    assert!(half.iter_mut().all(is_ended));
}

#[test]
fn sessions_and_channels_are_limited_and_free_again_after_their_end() {
    let lab = Lab::start("limits", quick());
    run(async {
        let mut handles = Vec::new();
        for _ in 0..MAX_SESSIONS {
            handles.push(lab.login("admin").await);
        }
        let mut more = lab.connect().await.unwrap();
        assert!(!more.authenticate_password("admin", PASSWORD).await.unwrap().success());
        let last = handles.pop().unwrap();
        let mut open = Vec::new();
        while let Ok(channel) = last.channel_open_session().await {
            open.push(channel);
            assert!(open.len() <= 8);
        }
        assert_eq!(open.len(), 8);
        last.disconnect(Disconnect::ByApplication, "", "").await.unwrap();
        drop((last, open));
        // The server notes the end of a connection within a moment.
        for attempt in 0.. {
            let mut again = lab.connect().await.unwrap();
            if again.authenticate_password("admin", PASSWORD).await.unwrap().success() {
                break;
            }
            assert!(attempt < 100);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn oversized_commands_and_clients_that_do_not_read_have_an_end() {
    let lab = Lab::start("oversized", Limits { write: Duration::from_secs(1), ..quick() });
    run(async {
        let handle = lab.login("admin").await;
        let long = "x".repeat(MAX_LINE + 1);
        assert_eq!(exec(&handle, &long).await, ("The command is too long.\n".to_owned(), Some(1)));
        let channel = handle.channel_open_session().await.unwrap();
        channel.exec(true, &b"version\xff"[..]).await.unwrap();
        assert_eq!(rest(channel).await.0, "The command is not UTF-8.\n");
        let channel = handle.channel_open_session().await.unwrap();
        channel.request_shell(true).await.unwrap();
        channel.data_bytes(format!("{long}\nsensorshow\nexit\n")).await.unwrap();
        assert_eq!(rest(channel).await, ("The line is too long.\n".to_owned(), Some(0)));

        // A window of a few bytes that never grows: the channel ends, the connection does not.
        let config = client::Config { window_size: 64, channel_buffer_size: 4, ..Default::default() };
        let mut stalled = client::connect(Arc::new(config), lab.address(), Trusting).await.unwrap();
        assert!(stalled.authenticate_password("admin", PASSWORD).await.unwrap().success());
        let channel = stalled.channel_open_session().await.unwrap();
        channel.exec(true, "help").await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(channel);
        assert_eq!(exec(&handle, "sensorshow").await.1, Some(0));
    });
}

#[test]
fn an_idle_shell_ends_and_the_time_is_a_setting_of_the_switch() {
    let lab = Lab::start("idle", quick());
    run(async {
        let handle = lab.login("admin").await;
        assert_eq!(exec(&handle, "timeout").await.0, "Current IDLE Timeout is 10 minutes\n");
        let expected =
            "IDLE Timeout Changed to 3 minutes\nThe modified IDLE Timeout will be in effect after NEXT login\n";
        assert_eq!(exec(&handle, "timeout 3").await.0, expected);
        assert_eq!(lab.shared.idle_timeout(), Some(Duration::from_secs(180)));
        exec(&handle, "timeout 0").await;
        assert_eq!(lab.shared.idle_timeout(), None);
        // A minute is too long for a test, so the setting is made here.
        lab.shared.lock().idle = Duration::from_millis(300);
        let other = lab.login("admin").await;
        let channel = other.channel_open_session().await.unwrap();
        channel.request_shell(true).await.unwrap();
        assert_eq!(rest(channel).await.0, "timed out waiting for input: auto-logout\n");
        // The earlier session has the time of its login.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(exec(&handle, "sensorshow").await.1, Some(0));
        // A connection without a channel ends, too.
        assert!(other.channel_open_session().await.is_err());
    });
}

#[test]
fn a_server_that_is_dropped_closes_its_connections_and_frees_its_address() {
    let lab = Lab::start("dropped", quick());
    let address = lab.address();
    let mut stream = TcpStream::connect(address).unwrap();
    drop(lab);
    assert!(is_ended(&mut stream));
    std::net::TcpListener::bind(address).unwrap();
}

proptest! {
    #[test]
    fn no_input_ends_the_command_line_with_a_panic(
        shows in any::<bool>(),
        lines in prop::collection::vec(
            prop_oneof![
                any::<Vec<u8>>(),
                ("(alicreate|cfgsave|portname|timeout|fabricprincipal|creditrecovmode|help|zoneshow)", "[ -~]{0,24}")
                    .prop_map(|(name, rest)| format!("{name} {rest}").into_bytes()),
            ],
            0..8,
        ),
    ) {
        let mut terminal = Terminal::new(shows);
        let here = SocketAddr::from(([127, 0, 0, 1], 22));
        let peer = Peer { address: here, local: here, tls: true };
        let mut console = Console::new("sw1", Shared::default(), ("admin", Role::Administer), "s", "SSH", peer);
        let mut shown = Vec::new();
        for byte in lines.join(&b'\n').into_iter().chain(*b"\n") {
            if let Some(Key::Line(line)) = terminal.take(byte, &mut shown) {
                let reply = console.line(Now::default(), &line, &mut Nothing);
                prop_assert!(reply.output.is_empty() || reply.asks || reply.output.ends_with('\n'), "{:?}", reply);
            }
        }
        prop_assert!(shows || shown.is_empty());
    }
}
