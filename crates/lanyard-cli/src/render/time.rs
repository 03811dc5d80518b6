//! Time in words.

use lanyard_core::Timestamp;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// `3m ago`. `now` is the daemon's clock, which wrote `then`: the clock of this machine may differ from it, and a
/// scripted one always does.
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    match now.millis_since(then) {
        ms if ms < SECOND_MS => "just now".to_owned(),
        ms => format!("{} ago", span(ms)),
    }
}

/// `for 3m`: how long something has been so.
pub(crate) fn lasting(now: Timestamp, since: Timestamp) -> String {
    match now.millis_since(since) {
        ms if ms < SECOND_MS => "just now".to_owned(),
        ms => format!("for {}", span(ms)),
    }
}

/// The largest unit that fits, rounded down: `90s` is `1m`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        ..SECOND_MS => format!("{ms}ms"),
        SECOND_MS..MINUTE_MS => format!("{}s", ms / SECOND_MS),
        MINUTE_MS..HOUR_MS => format!("{}m", ms / MINUTE_MS),
        HOUR_MS..DAY_MS => format!("{}h", ms / HOUR_MS),
        DAY_MS.. => format!("{}d", ms / DAY_MS),
    }
}

/// To the second, in UTC: the same length every time, and it sorts.
pub(crate) fn stamp(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let words = |ms: i64| ago(Timestamp::from_millis(ms), Timestamp::from_millis(0));
        assert_eq!(words(999), "just now");
        assert_eq!(words(1_000), "1s ago");
        assert_eq!(words(59_999), "59s ago");
        assert_eq!(words(60_000), "1m ago");
        assert_eq!(words(3_599_999), "59m ago");
        assert_eq!(words(3_600_000), "1h ago");
        assert_eq!(words(86_400_000 * 400), "400d ago");
    }

    #[test]
    fn a_time_ahead_of_the_clock_is_now() {
        assert_eq!(ago(Timestamp::from_millis(0), Timestamp::from_millis(5_000)), "just now");
    }

    #[test]
    fn a_stamp_is_utc_to_the_second() {
        assert_eq!(stamp(Timestamp::from_millis(1_794_729_600_007)), "2026-11-15T08:00:00Z");
    }
}
