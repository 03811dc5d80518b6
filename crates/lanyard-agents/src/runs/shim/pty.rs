//! The shim's end of a terminal: the program's keyboard and screen in one, with a window that has a size.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use lanyard_core::session::WindowSize;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::recording::Recording;
use crate::runs::folder::Folder;
use crate::runs::process::now_ms;
use crate::runs::pty_helper::HELPER;
use crate::runs::record::TerminalSpec;
use crate::runs::wire::Answer;

/// Changes of the size that are kept for a screen that is made again from the output. Older ones are forgotten first.
const SIZES_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct PtyMaster {
    master: OwnedFd,
    /// The program's end. Let go once the program has it, or its end would never be seen.
    slave: Option<File>,
    folder: Folder,
    recording: Recording,
    /// From which place in the output on, which size.
    sizes: VecDeque<(u64, WindowSize)>,
}

impl PtyMaster {
    pub(super) fn open(folder: &Folder, spec: TerminalSpec) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        // No terminal of the shim's: the helper takes it.
        let no_tty = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
        let path = Path::new(OsStr::from_bytes(name.as_bytes()));
        let slave = OpenOptions::new().read(true).write(true).custom_flags(no_tty).open(path)?;
        tcsetwinsize(&master, window(spec.size))?;
        let recording = Recording::create(folder, spec, now_ms())?;
        let sizes = VecDeque::from([(0, spec.size)]);
        folder.write_sizes(&sizes)?;
        Ok(Self { master, slave: Some(slave), folder: folder.clone(), recording, sizes })
    }

    /// The command that starts `program` on the terminal, through a helper that makes it the program's own.
    pub(super) fn command(&mut self, program: &str) -> io::Result<Command> {
        let slave = self.slave.take().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(HELPER)
            .arg(program)
            .env_remove("LINES")
            .env_remove("COLUMNS")
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave));
        Ok(command)
    }

    /// One more handle of this end.
    pub(super) fn end(&self) -> io::Result<File> {
        self.master.try_clone().map(File::from)
    }

    pub(super) fn record(&mut self, bytes: &[u8], now: u64) {
        self.recording.output(bytes, now);
    }

    /// `at` is the place in the output at which it happens, `consumed` that before which nothing is asked for any more.
    pub(super) fn resize(&mut self, size: WindowSize, (at, consumed): (u64, u64), now: u64) -> Answer {
        if size.check().is_err() || tcsetwinsize(&self.master, window(size)).is_err() {
            return Answer::NoTerminal;
        }
        self.recording.resized(size, now);
        self.sizes.push_back((at, size));
        while self.sizes.get(1).is_some_and(|(from, _)| *from <= consumed) || self.sizes.len() > SIZES_MAX {
            self.sizes.pop_front();
        }
        // Without it a later daemon only draws with an older size until the next change.
        let _ = self.folder.write_sizes(&self.sizes);
        Answer::Resized { at }
    }
}

fn window(size: WindowSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 }
}
