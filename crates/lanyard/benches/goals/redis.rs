//! Redis pub/sub as a reference for bursts, where a `redis-server` is installed.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::crowd::{Crowd, Publisher};
use crate::process::Foreign;

const STARTING: Duration = Duration::from_secs(5);

pub(crate) struct Redis {
    server: Foreign,
    pub(crate) crowd: Crowd,
    pub(crate) line: Line,
}

pub(crate) struct Line {
    publisher: TcpStream,
    /// Bytes of an event on the wire.
    frame: usize,
}

impl Redis {
    /// `None` where there is no Redis.
    pub(crate) fn start(dir: &Path, observers: usize, frame: usize) -> Result<Option<Self>> {
        std::fs::create_dir_all(dir)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
            &port.to_string(),
        ]);
        let Some(server) = Foreign::start(command.arg("--dir").arg(dir)) else { return Ok(None) };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let publisher = connect(address)?;
        let crowd = Crowd::join(address, observers, b"SUBSCRIBE c\r\n", b"*3")?;
        Ok(Some(Self { server, crowd, line: Line { publisher, frame } }))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(_) if began.elapsed() < STARTING => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => bail!("redis-server does not answer: {error}"),
        }
    }
}

impl Publisher for Line {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn publish(&mut self, texts: &[String]) -> Result<()> {
        let mut commands = String::new();
        // A delivered message has some thirty bytes around its content.
        let width = self.frame.saturating_sub(30);
        for text in texts {
            let _ = write!(
                commands,
                "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n${}\r\n{text:.<width$}\r\n",
                width.max(text.len())
            );
        }
        Ok(self.publisher.write_all(commands.as_bytes())?)
    }

    fn tend(&mut self) -> Result<()> {
        let mut answers = [0; 4_096];
        match self.publisher.read(&mut answers) {
            Ok(0) => bail!("redis-server closed the publisher's connection"),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
