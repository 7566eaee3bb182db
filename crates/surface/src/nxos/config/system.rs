//! Places of the configuration, VSANs, and the name of the switch.

use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Shown, failed};
use crate::nxos::session::{Place, Session, done, number};

/// `configure terminal`, `end` and `exit`: no object.
pub fn top(session: &mut Session<'_>, _: &Values) -> Outcome {
    session.place = Place::Top;
    done()
}

/// A command without an effect here, such as `terminal dont-ask`.
pub fn nothing(_: &mut Session<'_>, _: &Values) -> Outcome {
    done()
}

/// `copy running-config startup-config`: the fabric keeps its changes by itself.
pub fn copy(_: &mut Session<'_>, _: &Values) -> Outcome {
    Ok(Shown::text("[########################################] 100%\nCopy complete.\n"))
}

/// `switchname NAME`.
pub fn switch_name(session: &mut Session<'_>, values: &Values) -> Outcome {
    let name = values.text("NAME");
    if name.len() > 63 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(failed("% Invalid switch name: 1 to 63 letters, digits and the characters - _ ."));
    }
    session.enter_home();
    session.room.shared.lock().names.insert("switch".to_owned(), name.to_owned());
    done()
}

/// `vsan database`.
pub fn vsans(session: &mut Session<'_>, _: &Values) -> Outcome {
    session.place = Place::Vsans;
    done()
}

/// `vsan VSAN` and its names, with nothing to change: the VSANs are those of the lab.
pub fn vsan(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    if session.vsans()?.iter().all(|(own, _)| *own != vsan) {
        return Err(failed(format_args!(
            "% VSAN {vsan} cannot be created: the VSANs of a switch are its virtual fabrics in the lab file"
        )));
    }
    if let Some(name) = values.get("TEXT") {
        let name = name.trim_matches('"');
        let is_valid = (1..=32).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic() && c != '"');
        if !is_valid {
            return Err(failed("% Invalid VSAN name: 1 to 32 characters without spaces"));
        }
        session.nx.change(vsan, |settings| settings.name = Some(name.to_owned()));
    }
    done()
}

/// `no vsan VSAN suspend`: a VSAN is always active.
pub fn resume(session: &mut Session<'_>, values: &Values) -> Outcome {
    session.select(values.vsan().unwrap_or_default())?;
    done()
}

/// `vsan VSAN suspend` and `no vsan VSAN`.
pub fn end_vsan(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    session.select(vsan)?;
    Err(failed(format_args!("% VSAN {vsan} cannot be deleted or suspended: it is a virtual fabric of the lab file")))
}

/// `vsan VSAN interface NAME`.
pub fn membership(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, name) = (values.vsan().unwrap_or_default(), values.text("TEXT"));
    session.select(vsan)?;
    let wanted = number(name).ok_or_else(|| failed("% Invalid interface"))?;
    let placed = session.ports()?.into_iter().find(|placed| placed.port.number == wanted);
    match placed.map(|placed| placed.vsan) {
        Some(own) if own == vsan => done(),
        Some(own) => {
            Err(failed(format_args!("% {name} cannot leave VSAN {own}: the lab file links it to this virtual fabric")))
        }
        None => Err(failed("% Invalid interface")),
    }
}
