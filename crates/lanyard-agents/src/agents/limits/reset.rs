//! When a limit resets, in the forms in which agents say it.

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as WallTime, Zoned};

/// Seconds since 1970 above this are milliseconds.
const EPOCH_SECONDS_MAX: u64 = 100_000_000_000;
/// Milliseconds of the longest pause that is believed: weekly windows, and a month of a quota.
const PAUSE_MS_MAX: u64 = 40 * 24 * 60 * 60 * 1_000;
/// A time of day that has just passed is now, and not a day away.
const JUST_NOW_MS: i64 = 5 * 60 * 1_000;

/// The time of a reset, as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LimitReset {
    /// By the wall clock, in milliseconds since 1970.
    At(u64),
    /// So many milliseconds from now.
    In(u64),
    /// The next time that it is this time of day, on this day of the week if one is named, in this zone if one is.
    Clock { hour: i8, minute: i8, day: Option<Weekday>, zone: Option<String> },
}

impl LimitReset {
    /// Seconds or milliseconds since 1970.
    pub(crate) const fn at_epoch(number: u64) -> Self {
        Self::At(if number < EPOCH_SECONDS_MAX { number.saturating_mul(1_000) } else { number })
    }

    /// Milliseconds until the reset, by a wall clock that shows `wall_ms`; nothing for what cannot be meant.
    pub(crate) fn after_ms(&self, wall_ms: i64, zone: &TimeZone) -> Option<u64> {
        let after = match self {
            Self::At(at) => u64::try_from(i64::try_from(*at).ok()?.saturating_sub(wall_ms)).unwrap_or(0),
            Self::In(after) => *after,
            Self::Clock { hour, minute, day, zone: named } => {
                let named = named.as_deref().and_then(|name| TimeZone::get(name).ok());
                let now = WallTime::from_millisecond(wall_ms).ok()?;
                let now = now.to_zoned(named.unwrap_or_else(|| zone.clone()));
                next(&now, Time::new(*hour, *minute, 0, 0).ok()?, *day)?
            }
        };
        (after <= PAUSE_MS_MAX).then_some(after)
    }
}

fn next(now: &Zoned, time: Time, day: Option<Weekday>) -> Option<u64> {
    for days in 0..=7 {
        let date = now.date().checked_add(Span::new().days(days)).ok()?;
        if day.is_some_and(|day| date.weekday() != day) {
            continue;
        }
        let at = date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()?;
        let after = at.timestamp().as_millisecond() - now.timestamp().as_millisecond();
        if after >= -JUST_NOW_MS {
            return Some(u64::try_from(after).unwrap_or(0));
        }
    }
    None
}

/// The reset that words tell of.
pub(super) fn in_words(text: &str) -> Option<LimitReset> {
    epoch(text).or_else(|| pause(text)).or_else(|| clock(text))
}

/// `Claude AI usage limit reached|1794729600`.
fn epoch(text: &str) -> Option<LimitReset> {
    let (_, after) = text.split_once('|')?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    (digits.len() >= 10).then(|| digits.parse().ok().map(LimitReset::at_epoch))?
}

/// `retry in 37.5s`, `try again in 2 hours 5 minutes`, `reset after 1h2m3s`, `retry after 60`.
fn pause(text: &str) -> Option<LimitReset> {
    const BEFORE: [&str; 7] = [
        "retry in ",
        "again in ",
        "retry after ",
        "reset after ",
        "resets in ",
        "reset in ",
        "retry-after: ",
    ];
    let low = text.to_lowercase();
    BEFORE.iter().find_map(|before| {
        let (_, after) = low.split_once(before)?;
        duration(after).map(LimitReset::In)
    })
}

/// Milliseconds of a duration at the start of a text.
fn duration(text: &str) -> Option<u64> {
    let (mut rest, mut sum, mut any) = (text.trim_start(), 0.0_f64, false);
    while rest.starts_with(|first: char| first.is_ascii_digit()) {
        let end = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
        let after = rest[end..].trim_start();
        let word_end = after.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(after.len());
        let (word, more) = after.split_at(word_end);
        let unit = match word {
            "d" | "day" | "days" => 86_400_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
            "ms" | "millisecond" | "milliseconds" => 1.0,
            // A bare number is seconds, as in the header of that name.
            _ if !any => 1_000.0,
            _ => break,
        };
        (sum, any) = (sum + number * unit, true);
        rest = more.trim_start_matches([',', ' ']).trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    any.then(|| whole(sum)).flatten()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn whole(millis: f64) -> Option<u64> {
    millis.is_finite().then(|| millis.ceil().clamp(0.0, 1e15) as u64)
}

/// `resets 3pm`, `resets Mon 12:30am (Europe/Berlin)`, `try again at 4:36 PM`.
fn clock(text: &str) -> Option<LimitReset> {
    const BEFORE: [&str; 6] = ["resets at ", "reset at ", "again at ", "resets on ", "resets ", "retry at "];
    let low = text.to_lowercase();
    let (after, at) = BEFORE.iter().find_map(|before| {
        let at = low.find(before)? + before.len();
        Some((&low[at..], at))
    })?;
    let (day, after) = weekday(after);
    let end = after.find(|next: char| !next.is_ascii_digit() && next != ':').unwrap_or(after.len());
    let (digits, rest) = after.split_at(end);
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (mut hour, minute): (i8, i8) = (hour.parse().ok()?, minute.get(..2).unwrap_or(minute).parse().ok()?);
    let rest = rest.trim_start();
    let half = rest.get(..2).unwrap_or_default();
    if !digits.contains(':') && half != "am" && half != "pm" {
        return None;
    }
    match half {
        "pm" if hour < 12 => hour += 12,
        "am" if hour == 12 => hour = 0,
        _ => {}
    }
    // The zone's name keeps its case, where the lower case has the same length.
    let original = if low.len() == text.len() { &text[at..] } else { after };
    let zone = original.split_once('(').and_then(|(_, zone)| zone.split_once(')'));
    let zone = zone.map(|(zone, _)| zone.to_owned()).filter(|zone| !zone.contains(char::is_whitespace));
    (hour < 24 && minute < 60).then_some(LimitReset::Clock { hour, minute, day, zone })
}

/// A day of the week at the start of a text, and what follows it.
fn weekday(text: &str) -> (Option<Weekday>, &str) {
    const DAYS: [(&str, Weekday); 7] = [
        ("mon", Weekday::Monday),
        ("tue", Weekday::Tuesday),
        ("wed", Weekday::Wednesday),
        ("thu", Weekday::Thursday),
        ("fri", Weekday::Friday),
        ("sat", Weekday::Saturday),
        ("sun", Weekday::Sunday),
    ];
    let Some((_, day)) = DAYS.iter().find(|(name, _)| text.starts_with(name)) else { return (None, text) };
    let after = text.trim_start_matches(|next: char| next.is_ascii_alphabetic() || next == ',');
    let after = after.trim_start();
    (Some(*day), after.strip_prefix("at ").unwrap_or(after))
}
