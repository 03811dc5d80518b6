//! Looking at the write-ahead log before SQLite does. SQLite reads it up to the last commit whose frames are whole and
//! ignores the rest, which is right after a crash and silent after damage.
//!
//! Every frame names the generation of the log it belongs to (its *salts*), and its checksum is computed from the
//! checksum stored in the frame before it. So a frame behind a bad one can still be checked, and a commit that is whole
//! behind a bad frame shows that writing went on after it: the bad frame was damaged later.
//!
//! Not told: damage in the very last commit that also hits the mark of its end, since that is what an interrupted write
//! looks like; and a log that is missing as a whole.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::sqlite::open::beside;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// With this magic number checksums take words as little-endian, with the next one as big-endian.
const MAGIC: u32 = 0x377f_0682;
const PAGE_BYTES_MAX: u32 = 65_536;

/// The state of the end of the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalTail {
    /// Every frame is read.
    Clean,
    /// Frames of an unfinished commit, as a crash leaves them. The commit was never acknowledged.
    Unfinished,
    /// The log's header cannot be right, so that nothing in it is read.
    HeaderDamaged { frames: u64 },
    /// Number of whole commits that are not read, because the first of them or a frame before it is damaged.
    Damaged { commits: u64 },
}

impl WalTail {
    /// The notice for operators.
    pub(super) fn notice(self) -> Option<String> {
        match self {
            Self::Clean | Self::Unfinished => None,
            Self::HeaderDamaged { frames } => Some(format!(
                "the write-ahead log's header is damaged: {frames} pages written since the last checkpoint were not \
                 read (wal_header_damaged)"
            )),
            Self::Damaged { commits } => Some(format!(
                "the end of the write-ahead log is damaged: {commits} commits that were written are lost, or a power \
                 cut interrupted them (wal_tail_damaged)"
            )),
        }
    }
}

/// A log that is not there or cannot be read is SQLite's to complain about.
pub(super) fn look(journal: &Path) -> WalTail {
    let Ok(file) = File::open(beside(journal, "-wal")) else { return WalTail::Clean };
    let tail = walk(&mut BufReader::with_capacity(1 << 20, file));
    match tail {
        WalTail::Clean => {}
        WalTail::Unfinished => tracing::info!("the last commit of the write-ahead log was not finished"),
        WalTail::HeaderDamaged { .. } | WalTail::Damaged { .. } => {
            tracing::error!(notice = tail.notice().unwrap_or_default(), "the write-ahead log is damaged");
        }
    }
    tail
}

fn walk(log: &mut impl Read) -> WalTail {
    let mut header = [0; HEADER_BYTES];
    if log.read_exact(&mut header).is_err() {
        return WalTail::Clean;
    }
    let magic = number(&header, 0);
    let page = number(&header, 8);
    let order = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
    let known = magic & !1 == MAGIC && (512..=PAGE_BYTES_MAX).contains(&page) && page.is_power_of_two();
    let whole = known && sum(order, (0, 0), &header[..24]) == (number(&header, 24), number(&header, 28));
    if !whole {
        return without_header(log, &header);
    }
    let mut walk = Walk {
        salts: salts(&header[16..24]),
        order,
        before: sum(order, (0, 0), &header[..24]),
        ..Walk::default()
    };
    let mut frame = vec![0; FRAME_HEADER_BYTES + page as usize];
    while log.read_exact(&mut frame).is_ok() {
        walk.frame(&frame);
    }
    walk.done()
}

/// Frames of a log whose header is damaged. A log that was only just begun has none of its own yet.
fn without_header(log: &mut impl Read, header: &[u8]) -> WalTail {
    if header.iter().all(|byte| *byte == 0) {
        return WalTail::Clean;
    }
    let mut frames = 0;
    let mut frame = vec![0; FRAME_HEADER_BYTES + super::open::PAGE_BYTES.unsigned_abs() as usize];
    while log.read_exact(&mut frame).is_ok() {
        frames += u64::from(frame.iter().any(|byte| *byte != 0));
    }
    if frames == 0 { WalTail::Clean } else { WalTail::HeaderDamaged { frames } }
}

type Checksum = (u32, u32);

struct Walk {
    salts: (u32, u32),
    order: fn([u8; 4]) -> u32,
    /// The checksum stored in the frame before.
    before: Checksum,
    /// A frame was bad, or of another generation.
    broken: bool,
    /// Frames of this generation since then, and commits among them that are whole in themselves.
    behind: u64,
    commits: u64,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            salts: (0, 0),
            order: u32::from_be_bytes,
            before: (0, 0),
            broken: false,
            behind: 0,
            commits: 0,
        }
    }
}

impl Walk {
    fn frame(&mut self, frame: &[u8]) {
        let ours = salts(&frame[8..16]) == self.salts;
        let stored = (number(frame, 16), number(frame, 20));
        let found = sum(self.order, sum(self.order, self.before, &frame[..8]), &frame[FRAME_HEADER_BYTES..]);
        let good = ours && found == stored;
        // Behind a bad frame the next one is checked from what the bad one says of itself.
        self.before = stored;
        if good && !self.broken {
            return;
        }
        self.broken = true;
        if ours {
            self.behind += 1;
            let ends_commit = number(frame, 4) > 0;
            self.commits += u64::from(good && ends_commit);
        }
    }

    fn done(&self) -> WalTail {
        match (self.behind, self.commits) {
            (_, 1..) => WalTail::Damaged { commits: self.commits },
            (1.., 0) => WalTail::Unfinished,
            (0, 0) => WalTail::Clean,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}

fn salts(bytes: &[u8]) -> (u32, u32) {
    (number(bytes, 0), number(bytes, 4))
}

/// SQLite's checksum of a write-ahead log: two running sums over pairs of words.
fn sum(order: fn([u8; 4]) -> u32, (mut one, mut two): Checksum, bytes: &[u8]) -> Checksum {
    for [first, second] in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
        one = one.wrapping_add(order(*first)).wrapping_add(two);
        two = two.wrapping_add(order(*second)).wrapping_add(one);
    }
    (one, two)
}
