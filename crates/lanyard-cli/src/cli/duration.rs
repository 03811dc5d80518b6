//! Spans of time on the command line.

/// `90s`, `30m`, `2h` or `1d`.
pub(super) fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || "it is a number with s, m, h or d, such as 30m".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_ms: u64 = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit_ms).filter(|ms| *ms > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(duration_ms("90s"), Ok(90_000));
        assert_eq!(duration_ms("30m"), Ok(1_800_000));
        assert_eq!(duration_ms("1d"), Ok(86_400_000));
        for bad in ["", "m", "30", "0m", "-1m", "1w", "1.5h", "99999999999999999999d", "ö"] {
            assert!(duration_ms(bad).is_err(), "{bad}");
        }
    }
}
