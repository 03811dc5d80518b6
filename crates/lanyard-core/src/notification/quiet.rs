//! Quiet hours: notifications that are not critical wait until the end.

use std::fmt;
use std::str::FromStr;

const DAY_MINUTES: u32 = 24 * 60;

/// From one minute of the day to another, which may be on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u32,
    to: u32,
}

impl QuietHours {
    /// Minutes until the end of quiet hours; `None` outside of them.
    #[must_use]
    pub const fn rest(&self, minute: u32) -> Option<u32> {
        let within = if self.from <= self.to {
            minute >= self.from && minute < self.to
        } else {
            minute >= self.from || minute < self.to
        };
        if within { Some((self.to + DAY_MINUTES - minute) % DAY_MINUTES) } else { None }
    }
}

impl FromStr for QuietHours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no time such as 22:00-07:00");
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
            (hour < 24 && minute < 60).then_some(hour * 60 + minute)
        };
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (minute(from).ok_or_else(wrong)?, minute(to).ok_or_else(wrong)?);
        if from == to {
            return Err(format!("`{text}` is no time at all: it ends when it begins"));
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_may_go_over_midnight() {
        let night: QuietHours = "22:00-07:00".parse().unwrap();
        assert_eq!(night.to_string(), "22:00-07:00");
        let rest = |hour: u32, minute: u32| night.rest(hour * 60 + minute);
        assert_eq!((rest(21, 59), rest(22, 0), rest(23, 30)), (None, Some(540), Some(450)));
        assert_eq!((rest(0, 0), rest(6, 59), rest(7, 0)), (Some(420), Some(1), None));
        let noon: QuietHours = "12:00-13:30".parse().unwrap();
        assert_eq!((noon.rest(719), noon.rest(720), noon.rest(810)), (None, Some(90), None));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in ["", "22:00", "22-7", "24:00-01:00", "22:60-01:00", "a:b-c:d", "07:00-07:00"] {
            assert!(bad.parse::<QuietHours>().is_err(), "{bad}");
        }
    }
}
