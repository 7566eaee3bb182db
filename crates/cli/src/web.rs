//! The page of `sanloom up`, `sanloom sim` and `sanloom view`: [`WebArgs`] and the fabrics behind
//! it.

use sanloom_api::control::{Answer, Request, RequestError, ZoneAction};
use sanloom_api::graph::Graph;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_fc::san::Lab;
use sanloom_lab::topology;
use sanloom_live::capture::FrameSink;
use sanloom_live::control::{Control, LocalClient, NoAnswer};
use sanloom_surface::server::users::Users;
use sanloom_surface::server::{Bytes, Listen, Server, THREADS, Unusable, tls};
use sanloom_surface::web::{Access, Connect, Settings, Web};
use sanloom_surface::{Busy, Fabric};
use std::cell::OnceCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time in which the loop of an instance has to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Time in which a change of the zones has to end. Busy switches and a slow pace of a simulation
/// delay it.
const COMMIT_LIMIT: Duration = Duration::from_secs(120);
/// Maximum number of changes of the zones that wait at a time. Each occupies a thread of a server,
/// which has one more than this, so that other requests are still answered.
const MAX_COMMITS: usize = THREADS - 1;

/// Options of the page.
#[derive(clap::Args, Debug, Default)]
pub struct WebArgs {
    /// Serve the page at this address and port, for example 127.0.0.1:8080: with HTTPS, except at a
    /// loopback address
    #[arg(long, value_name = "ADDRESS:PORT")]
    web: Option<SocketAddr>,
    /// Let everybody who reaches the page use it without login; only at a loopback address
    #[arg(long, requires = "web")]
    web_open: bool,
    /// Name at which browsers reach the page, besides its address; may be repeated
    #[arg(long, value_name = "NAME", requires = "web")]
    web_name: Vec<String>,
    /// Folder with the files of the page, for its development
    #[arg(long, value_name = "FOLDER", requires = "web", hide = true)]
    web_files: Option<PathBuf>,
}

/// A page that is being served.
pub struct Page {
    server: Server,
    web: Arc<Web>,
    scheme: &'static str,
}

impl Page {
    /// Address of the page for a browser.
    pub fn url(&self) -> String {
        let address = self.server.addresses().first();
        address.map(|address| format!("{}://{address}/", self.scheme)).unwrap_or_default()
    }

    /// Shows the results of the run, and serves them until Ctrl-C.
    pub fn serve_results(&self, results: Vec<Bytes>) {
        self.web.finish(results);
        self.serve();
    }

    fn serve(&self) {
        output::note(&format!("The page is at {}; end it with Ctrl-C.", self.url()));
        while !sanloom_console::interrupt::requested() {
            sanloom_console::interrupt::pause(Duration::from_millis(200));
        }
    }
}

/// Source of the page.
pub struct Source {
    /// Connection to the fabric.
    pub connect: Connect,
    /// `live`, `simulated` or `finished`.
    pub kind: &'static str,
    /// Results of finished runs as JSON.
    pub results: Vec<Bytes>,
}

impl WebArgs {
    /// A page at an address, for commands that have no other purpose.
    pub fn at(address: SocketAddr, open: bool) -> WebArgs {
        WebArgs { web: Some(address), web_open: open, ..WebArgs::default() }
    }

    /// True if a page is requested.
    pub fn is_requested(&self) -> bool {
        self.web.is_some()
    }

    /// Serves the page, if it is requested.
    ///
    /// # Errors
    /// The address is in use, or a file cannot be read or written.
    pub fn serve(&self, login: &Login, source: Source) -> Result<Option<Page>, Failure> {
        let Some(address) = self.web else { return Ok(None) };
        let is_loopback = address.ip().is_loopback();
        if self.web_open && !is_loopback {
            return Err(Failure::usage(format_args!(
                "{address} is not a loopback address, so its page needs a login; remove --web-open"
            )));
        }
        let access = if self.web_open { Access::Open } else { Access::Users(login.users()?) };
        let certificate = || {
            let names: Vec<String> = std::iter::once("localhost".to_owned()).chain(self.web_name.clone()).collect();
            tls::identity(&login.folder, &names, &[address.ip()]).map_err(Failure::environment)
        };
        let tls = (!is_loopback).then(certificate).transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let Source { connect, kind, results } = source;
        let settings = Settings { access, names: self.web_name.clone(), assets: self.web_files.clone(), kind, results };
        let web = Arc::new(Web::start(settings, &connect).map_err(Failure::environment)?);
        let listen = Listen { address, tls, handler: web.clone() };
        let server = Server::start(vec![listen], move || connect()).map_err(unusable)?;
        Ok(Some(Page { server, web, scheme }))
    }
}

fn unusable(error: Unusable) -> Failure {
    Failure::environment(error)
}

/// Users of the page and of the management interfaces: one table for all of them.
pub struct Login {
    /// Folder of users, keys and certificates.
    pub folder: PathBuf,
    /// Standard error is a log, so a random password goes to a file of the folder.
    is_hidden: bool,
    table: OnceCell<Arc<Users>>,
}

impl Login {
    /// The users of a folder. Nothing is read before [`Login::users`] is called.
    pub fn new(folder: &Path, is_hidden: bool) -> Login {
        Login { folder: folder.to_owned(), is_hidden, table: OnceCell::new() }
    }

    /// The user table of the folder, or one with a random password.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn users(&self) -> Result<Arc<Users>, Failure> {
        if let Some(users) = self.table.get() {
            return Ok(users.clone());
        }
        let users = Arc::new(self.read()?);
        Ok(self.table.get_or_init(|| users).clone())
    }

    fn read(&self) -> Result<Users, Failure> {
        let path = self.folder.join("users");
        if let Some(users) = Users::read(&path).map_err(Failure::environment)?.filter(|users| !users.is_empty()) {
            return Ok(users);
        }
        let (users, password) = Users::with_random_password().map_err(Failure::environment)?;
        if self.is_hidden {
            let path = self.folder.join("web-password");
            write_secret(&path, &password).map_err(Failure::environment)?;
            output::note(&format!("The password of the user admin is in {}.", path.display()));
        } else {
            output::note(&format!("Log in as admin with the password {password}, which is valid for this run."));
        }
        Ok(users)
    }
}

fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")
}

/// Drawing of a lab that may change. It is made when it is requested, in the thread that requests
/// it.
pub struct Drawing(Mutex<Drawn>);

struct Drawn {
    lab: Arc<Lab>,
    /// Links that are known to be isolated.
    isolated: Vec<usize>,
    graph: Option<Arc<Graph>>,
}

impl Drawing {
    /// The drawing of a lab.
    pub fn new(lab: Arc<Lab>, isolated: Vec<usize>) -> Drawing {
        Drawing(Mutex::new(Drawn { lab, isolated, graph: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Drawn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the lab. Returns at once, also while a drawing is being made.
    pub fn update(&self, lab: &Arc<Lab>) {
        let Ok(mut drawn) = self.0.try_lock() else { return };
        if !Arc::ptr_eq(&drawn.lab, lab) {
            *drawn = Drawn { lab: lab.clone(), isolated: Vec::new(), graph: None };
        }
    }

    /// The drawing.
    pub fn graph(&self) -> Arc<Graph> {
        let mut drawn = self.lock();
        if drawn.graph.is_none() {
            drawn.graph = Some(Arc::new(topology::graph(&drawn.lab, &drawn.isolated)));
        }
        drawn.graph.clone().unwrap_or_default()
    }
}

/// A running instance in this process. Clones are the fabrics of the threads of one server;
/// [`LiveFabric::for_server`] returns that of another one.
#[derive(Clone)]
pub struct LiveFabric {
    /// Client of its loop.
    client: LocalClient,
    /// Drawing of its lab.
    drawing: Arc<Drawing>,
    /// Changes of the zones that wait in the server.
    commits: Arc<AtomicUsize>,
}

impl LiveFabric {
    /// Returns the fabric of a server without waiting changes.
    pub fn new(client: LocalClient, drawing: Arc<Drawing>) -> LiveFabric {
        LiveFabric { client, drawing, commits: Arc::default() }
    }

    /// Returns the fabric of another server, which has a count of its own of waiting changes.
    pub fn for_server(&self) -> LiveFabric {
        LiveFabric { commits: Arc::default(), ..self.clone() }
    }
}

/// True for a request that is answered when the whole fabric has new zones.
fn changes_zones(request: &Request) -> bool {
    let Request::Zone { action, .. } = request else { return false };
    let action = if let ZoneAction::As { action, .. } = action { action } else { action };
    matches!(action, ZoneAction::Commit | ZoneAction::EditAndCommit { .. } | ZoneAction::Rollback)
}

/// A change of the zones that waits. Dropping it lets another one wait.
struct Commit<'a>(&'a AtomicUsize);

impl Commit<'_> {
    /// Returns `None` if [`MAX_COMMITS`] wait in the server.
    fn begin(commits: &AtomicUsize) -> Option<Commit<'_>> {
        let more = |waiting| (waiting < MAX_COMMITS).then_some(waiting + 1);
        commits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Commit(commits))
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Fabric for LiveFabric {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        if !changes_zones(&request) {
            return self.client.ask(request, None, LIMIT).map_err(|_| Busy);
        }
        let _commit = Commit::begin(&self.commits).ok_or(Busy)?;
        match self.client.ask(request, None, COMMIT_LIMIT) {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::Ended) => Err(Busy),
            // The change goes on, so "try again" would be wrong.
            Err(NoAnswer::Late) => Ok(Answer::Failed(RequestError::environment(format!(
                "the change of the zones has not ended after {} s, and goes on; read the zones before the next change",
                COMMIT_LIMIT.as_secs()
            )))),
        }
    }

    fn capture(&mut self, port: &str, sink: Box<dyn Write + Send>) -> Result<Answer, Busy> {
        let request = Request::Capture { link: port.to_owned(), file: Some("(stream)".to_owned()) };
        self.client.ask(request, Some(FrameSink(sink)), LIMIT).map_err(|_| Busy)
    }

    fn graph(&mut self) -> Result<Arc<Graph>, Busy> {
        Ok(self.drawing.graph())
    }
}

/// Finished runs of a lab.
pub struct FinishedFabric(pub Arc<Drawing>);

impl Fabric for FinishedFabric {
    fn ask(&mut self, _: Request) -> Result<Answer, Busy> {
        Ok(Answer::failed("this is a finished run; its state cannot be asked or changed"))
    }

    fn graph(&mut self) -> Result<Arc<Graph>, Busy> {
        Ok(self.0.graph())
    }
}

/// Serves finished runs until Ctrl-C.
///
/// # Errors
/// As [`WebArgs::serve`].
pub fn serve_results(args: &WebArgs, drawing: Drawing, results: Vec<Bytes>) -> Result<(), Failure> {
    let drawing = Arc::new(drawing);
    let connect: Connect = Arc::new(move || Box::new(FinishedFabric(drawing.clone())));
    let source = Source { connect, kind: "finished", results };
    if let Some(page) = args.serve(&login_of_user(), source)? {
        page.serve();
    }
    Ok(())
}

/// Login of pages of runs. A run is no instance with a folder, so the certificate is kept for the
/// user.
fn login_of_user() -> Login {
    let folder = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state")));
    Login::new(&folder.unwrap_or_else(std::env::temp_dir).join("sanloom"), false)
}

/// Serves the page of a paced run, whose requests `control` receives.
///
/// # Errors
/// As [`WebArgs::serve`].
pub fn serve_run(args: &WebArgs, drawing: Drawing, control: &Control) -> Result<Option<Page>, Failure> {
    let fabric = LiveFabric::new(control.local(), Arc::new(drawing));
    let connect: Connect = Arc::new(move || Box::new(fabric.clone()));
    let page = args.serve(&login_of_user(), Source { connect, kind: "simulated", results: Vec::new() })?;
    if let Some(page) = &page {
        output::note(&format!("The page is at {}.", page.url()));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn changes_of_the_zones_leave_a_thread_of_each_server_to_other_requests() {
        let folder = std::env::temp_dir().join(format!("sanloom-commits-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let control = Control::listen(&folder.join("control"), None).expect("a socket");
        let lab = sanloom_lab::load("lab.toml", "[switch.sw1]\n", &[]).expect("a lab").lab;
        let page = LiveFabric::new(control.local(), Arc::new(Drawing::new(Arc::new(lab), Vec::new())));
        fs::remove_dir_all(&folder).expect("the folder");
        let (thread, ssh) = (page.clone(), page.for_server());
        let fill = |fabric: &LiveFabric| {
            let commits = fabric.commits.clone();
            std::iter::from_fn(move || Commit::begin(&commits).map(std::mem::forget)).take(THREADS).count()
        };
        assert_eq!(fill(&page), THREADS - 1);
        assert_eq!(fill(&thread), 0, "the threads of a server share its limit");
        assert_eq!(fill(&ssh), THREADS - 1, "one server takes nothing from another one");
        drop(Commit(&page.commits));
        assert!(Commit::begin(&thread.commits).is_some());
    }

    #[test]
    fn page_and_management_share_one_random_password() {
        let folder = std::env::temp_dir().join(format!("sanloom-login-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let login = Login::new(&folder, true);
        let users = [login.users().expect("users"), login.users().expect("users")];
        let password = fs::read_to_string(folder.join("web-password")).expect("a password");
        fs::remove_dir_all(&folder).expect("the folder");
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(users.iter().all(|users| users.check(here, "admin", password.trim()).is_ok()));
        assert!(Arc::ptr_eq(&users[0], &users[1]));
    }
}
