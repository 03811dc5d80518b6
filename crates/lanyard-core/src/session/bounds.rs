//! Bounds on what a run may use of the machine: what is asked for, and what holds. Numbers and words only; how a machine
//! holds them is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::refusal::Refusal;

/// Agents do not even start with less.
const MEMORY_MIB_MIN: u32 = 16;
/// A sandbox has processes of its own, and a runtime some ten threads.
const PROCESSES_MIN: u32 = 16;
const OPEN_FILES_MIN: u32 = 16;

/// What can be bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundedResource {
    Memory,
    /// Processes and their threads.
    Processes,
    Cpu,
    OpenFiles,
    FileSize,
}

impl BoundedResource {
    pub const ALL: [Self; 5] = [Self::Memory, Self::Processes, Self::Cpu, Self::OpenFiles, Self::FileSize];

    /// The name of its setting.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Memory => "memory_mib",
            Self::Processes => "processes",
            Self::Cpu => "cpu_percent",
            Self::OpenFiles => "open_files",
            Self::FileSize => "file_mib",
        }
    }

    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpu => "cpu",
            Self::OpenFiles => "open files",
            Self::FileSize => "file size",
        }
    }

    /// The least that can be asked for.
    const fn min(self) -> u32 {
        match self {
            Self::Memory => MEMORY_MIB_MIN,
            Self::Processes => PROCESSES_MIN,
            Self::OpenFiles => OPEN_FILES_MIN,
            Self::Cpu | Self::FileSize => 1,
        }
    }

    fn limit(self, amount: u32) -> String {
        match self {
            Self::Memory | Self::FileSize => format!("{amount} MiB"),
            Self::Cpu => format!("{amount} %"),
            Self::Processes | Self::OpenFiles => amount.to_string(),
        }
    }
}

/// What happens where a machine cannot hold a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundsMode {
    /// The run is refused.
    #[default]
    Required,
    /// The run goes without that bound, and its record says so.
    BestEffort,
}

/// The most that a run may use. What is left out is not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceBounds {
    /// Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Processes and threads at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Processor time in percent of one core: 200 is two cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Open files of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// The size of each file that is written, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mib: Option<u32>,
    /// What happens where the machine cannot hold one of them.
    #[serde(skip_serializing_if = "is_required")]
    pub mode: BoundsMode,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_required(mode: &BoundsMode) -> bool {
    *mode == BoundsMode::Required
}

impl ResourceBounds {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        BoundedResource::ALL.iter().all(|what| self.of(*what).is_none())
    }

    #[must_use]
    pub const fn of(&self, what: BoundedResource) -> Option<u32> {
        match what {
            BoundedResource::Memory => self.memory_mib,
            BoundedResource::Processes => self.processes,
            BoundedResource::Cpu => self.cpu_percent,
            BoundedResource::OpenFiles => self.open_files,
            BoundedResource::FileSize => self.file_mib,
        }
    }

    const fn place(&mut self, what: BoundedResource) -> &mut Option<u32> {
        match what {
            BoundedResource::Memory => &mut self.memory_mib,
            BoundedResource::Processes => &mut self.processes,
            BoundedResource::Cpu => &mut self.cpu_percent,
            BoundedResource::OpenFiles => &mut self.open_files,
            BoundedResource::FileSize => &mut self.file_mib,
        }
    }

    /// Whether an agent can work within each of them.
    pub fn check(&self) -> Result<(), Refusal> {
        for what in BoundedResource::ALL {
            let (setting, min) = (what.setting(), what.min());
            if self.of(what).is_some_and(|amount| amount < min) {
                return Err(Refusal::BoundTooSmall { setting, min });
            }
        }
        Ok(())
    }

    /// Both together: the smaller of each, and required where one is.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other.settled() } else { *self };
        }
        let best = self.mode == BoundsMode::BestEffort && other.mode == BoundsMode::BestEffort;
        let mode = if best { BoundsMode::BestEffort } else { BoundsMode::Required };
        let mut both = Self { mode, ..Self::default() };
        for what in BoundedResource::ALL {
            *both.place(what) = self.of(what).into_iter().chain(other.of(what)).min();
        }
        both
    }

    /// A mode without a bound says nothing.
    fn settled(&self) -> Self {
        if self.is_empty() { Self::default() } else { *self }
    }

    /// Sets the bound of a setting's name. False where no setting has that name.
    #[must_use]
    pub fn set(&mut self, setting: &str, amount: u32) -> bool {
        let found = BoundedResource::ALL.into_iter().find(|what| what.setting() == setting);
        found.map(|what| *self.place(what) = Some(amount)).is_some()
    }
}

/// What holds a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundHolder {
    /// For the run as a whole.
    Cgroup,
    /// For each process; processes are counted for the sandbox.
    Rlimit,
}

impl BoundHolder {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Rlimit => "rlimit",
        }
    }
}

/// A bound on the resources of a run, and what holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBound {
    pub what: BoundedResource,
    /// In the unit of its setting.
    pub amount: u32,
    /// In words: `2048 MiB`.
    pub limit: String,
    pub by: BoundHolder,
    /// How often the run met it. Only a cgroup counts that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub met: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl HeldBound {
    #[must_use]
    pub fn new(what: BoundedResource, amount: u32, by: BoundHolder) -> Self {
        Self { what, amount, limit: what.limit(amount), by, met: 0 }
    }

    /// `memory 2048 MiB by cgroup, met 2 times`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let met = match self.met {
            0 => String::new(),
            1 => ", met once".to_owned(),
            times => format!(", met {times} times"),
        };
        format!("{} {} by {}{met}", self.what.in_words(), self.limit, self.by.as_str())
    }
}

/// What a run meets at a bound, in words.
#[must_use]
pub fn bound_met_in_words(what: BoundedResource, limit: &str, times: u64) -> String {
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    match what {
        BoundedResource::Memory => {
            format!(
                "the run reached its bound of {limit} of memory: the kernel ended a process, {times} so far"
            )
        }
        BoundedResource::Processes => {
            format!(
                "the run reached its bound of {limit} processes and threads: a new one was refused, {times} so far"
            )
        }
        BoundedResource::Cpu | BoundedResource::OpenFiles | BoundedResource::FileSize => {
            format!("the run reached its bound of {limit} of {}, {times} so far", what.in_words())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(memory_mib: u32) -> ResourceBounds {
        ResourceBounds { memory_mib: Some(memory_mib), ..ResourceBounds::default() }
    }

    #[test]
    fn two_bounds_are_the_smaller_of_each() {
        let best = ResourceBounds { processes: Some(50), mode: BoundsMode::BestEffort, ..memory(100) };
        let both = best.and(&ResourceBounds { open_files: Some(64), ..memory(200) });
        assert_eq!(
            both,
            ResourceBounds {
                processes: Some(50),
                open_files: Some(64),
                mode: BoundsMode::Required,
                ..memory(100)
            }
        );
        assert_eq!(best.and(&best), best);
        assert_eq!(best.and(&ResourceBounds::default()), best, "what asks for nothing changes nothing");
        let word = ResourceBounds { mode: BoundsMode::BestEffort, ..ResourceBounds::default() };
        assert_eq!(word.and(&word), ResourceBounds::default());
        assert_eq!(word.and(&memory(9)), memory(9));
    }

    #[test]
    fn a_bound_that_no_agent_can_work_in_is_refused() {
        assert!(memory(MEMORY_MIB_MIN).check().is_ok() && ResourceBounds::default().check().is_ok());
        for what in BoundedResource::ALL {
            let mut bounds = ResourceBounds::default();
            assert!(bounds.set(what.setting(), what.min() - 1));
            assert_eq!(
                bounds.check(),
                Err(Refusal::BoundTooSmall { setting: what.setting(), min: what.min() })
            );
        }
        assert!(!memory(1).set("made_up", 1));
    }

    #[test]
    fn what_is_not_asked_for_is_not_written() {
        assert_eq!(serde_json::to_string(&memory(64)).unwrap(), r#"{"memory_mib":64}"#);
        assert!(serde_json::from_str::<ResourceBounds>(r#"{"memory":64}"#).is_err());
        let held = HeldBound::new(BoundedResource::Cpu, 150, BoundHolder::Cgroup);
        assert_eq!(held.in_words(), "cpu 150 % by cgroup");
    }
}
