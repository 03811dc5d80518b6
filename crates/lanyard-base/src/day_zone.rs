//! Days of a time zone, as spans of points in time.

use jiff::Zoned;
use jiff::civil::Date;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use lanyard_core::Timestamp;

/// A time zone, by its name in the system's database or as an offset from UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayZone {
    zone: TimeZone,
}

/// A day of a time zone. It has 23 or 25 hours where a clock is changed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDay {
    /// As `2026-11-19`.
    pub date: String,
    pub start: Timestamp,
    /// The start of the next day.
    pub end: Timestamp,
}

impl LocalDay {
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

impl DayZone {
    /// The zone of this name, such as `Europe/Berlin`, `UTC` or `+05:30`; the machine's own for an empty one. Answers why
    /// there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Ok(Self { zone: TimeZone::system() });
        }
        let found = DateTimeParser::new().parse_time_zone(name);
        found.map(|zone| Self { zone }).map_err(|error| error.to_string())
    }

    #[must_use]
    pub const fn utc() -> Self {
        Self { zone: TimeZone::UTC }
    }

    /// Its name, or its offset from UTC.
    #[must_use]
    pub fn name(&self) -> String {
        match self.zone.iana_name() {
            Some(name) => name.to_owned(),
            None => self.zone.to_offset(jiff::Timestamp::UNIX_EPOCH).to_string(),
        }
    }

    /// The day a time lies in.
    #[must_use]
    pub fn day(&self, at: Timestamp) -> LocalDay {
        self.local(self.at(at).date())
    }

    /// The day a time lies in and those before it, oldest first; `count` in all.
    #[must_use]
    pub fn days(&self, at: Timestamp, count: u32) -> Vec<LocalDay> {
        let mut date = self.at(at).date();
        let mut days = Vec::new();
        for _ in 0..count {
            days.push(self.local(date));
            match date.yesterday() {
                Ok(before) => date = before,
                Err(_) => break,
            }
        }
        days.reverse();
        days
    }

    fn at(&self, at: Timestamp) -> Zoned {
        // A time beyond all calendars is no time of an event.
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
        at.to_zoned(self.zone.clone())
    }

    fn local(&self, date: Date) -> LocalDay {
        let start = |date: Date| {
            let start = date.to_zoned(self.zone.clone());
            Timestamp::from_millis(start.map_or(i64::MAX, |start| start.timestamp().as_millisecond()))
        };
        let end = date.tomorrow().map_or(Timestamp::from_millis(i64::MAX), start);
        LocalDay { date: date.to_string(), start: start(date), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_begins_and_ends_at_midnight_of_its_zone() {
        let india = DayZone::named("+05:30").unwrap();
        let day = india.day(at("2026-11-19T18:29:59Z"));
        assert_eq!((day.date.as_str(), day.end), ("2026-11-19", at("2026-11-19T18:30:00Z")));
        let next = india.day(at("2026-11-19T18:30:00Z"));
        assert_eq!((next.date.as_str(), next.start), ("2026-11-20", day.end));
        assert!(day.has(day.start) && !day.has(day.end));
        let utc = DayZone::named("UTC").unwrap();
        assert_eq!(utc.day(at("2026-11-19T23:59:59.999Z")).date, "2026-11-19");
    }

    #[test]
    fn days_follow_each_other_without_a_gap() {
        let days = DayZone::named("+02:00").unwrap().days(at("2026-03-01T23:00:00Z"), 3);
        let dates: Vec<&str> = days.iter().map(|day| day.date.as_str()).collect();
        assert_eq!(dates, ["2026-02-28", "2026-03-01", "2026-03-02"]);
        assert!(days.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_name_that_is_no_zone_is_refused() {
        assert!(DayZone::named("Mars/Olympus").is_err());
        assert!(DayZone::named("+99:00").is_err());
        assert!(DayZone::named("").is_ok());
    }
}
