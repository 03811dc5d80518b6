//! Putting several rankings together: reciprocal rank fusion. It needs no scores that can be compared, only places, so
//! words and vectors can be told by the same measure.

use std::collections::BTreeMap;

/// Damping of reciprocal rank fusion: the weight of first places against later ones. 60 is the usual value.
const DAMPING: u32 = 60;

/// Merges the rankings into one, best first; each ranking has its best first. The order is deterministic.
#[must_use]
pub fn fuse<T: Ord + Clone>(rankings: &[Vec<T>]) -> Vec<(T, f64)> {
    let mut scores: BTreeMap<&T, f64> = BTreeMap::new();
    for ranking in rankings {
        for (place, item) in (1_u32..).zip(ranking) {
            *scores.entry(item).or_default() += 1.0 / f64::from(DAMPING.saturating_add(place));
        }
    }
    let mut fused: Vec<(T, f64)> = scores.into_iter().map(|(item, score)| (item.clone(), score)).collect();
    fused.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    fused
}

/// Cosine similarity, from -1 to 1; 0 when a vector is zero or the lengths differ.
#[must_use]
pub fn likeness(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    let (mut dot, mut a, mut b) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (x, y) in one.iter().zip(other) {
        dot += x * y;
        a += x * x;
        b += y * y;
    }
    let length = (a * b).sqrt();
    if length.is_normal() { dot / length } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_find_goes_before_what_one_finds() {
        let fused = fuse(&[vec!["a", "b", "c"], vec!["c", "d"]]);
        let order: Vec<&str> = fused.iter().map(|(item, _)| *item).collect();
        assert_eq!(order, ["c", "a", "b", "d"]);
        assert_eq!(fuse::<u8>(&[]), []);
    }

    #[test]
    fn likeness_is_of_directions() {
        assert!((likeness(&[1.0, 0.0], &[4.0, 0.0]) - 1.0).abs() < 1e-6);
        assert!(likeness(&[1.0, 0.0], &[0.0, 1.0]).abs() < 1e-6);
        for odd in [likeness(&[0.0], &[1.0]), likeness(&[], &[]), likeness(&[1.0], &[1.0, 2.0])] {
            assert!(odd.abs() < f32::EPSILON);
        }
        assert!(likeness(&[f32::MAX, f32::MAX], &[f32::MAX, 1.0]).is_finite());
    }
}
