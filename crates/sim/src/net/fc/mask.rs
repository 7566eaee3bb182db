//! Bit masks of the inputs with an eligible frame for each output.

/// One mask for each output, in two levels: a bit for each input, and a bit for each word of these
/// that is not 0. A search reads a few words, however many inputs there are.
#[derive(Clone, Debug)]
pub(super) struct Masks {
    /// Words of a mask, and words above them.
    words: usize,
    above: usize,
    /// For each output, the words above and then the words.
    bits: Box<[u64]>,
}

impl Masks {
    /// Returns empty masks.
    pub fn new(outputs: usize, inputs: usize) -> Masks {
        let words = inputs.div_ceil(64);
        let above = words.div_ceil(64);
        Masks { words, above, bits: vec![0; outputs * (above + words)].into() }
    }

    #[inline]
    fn of(&self, output: u16) -> (&[u64], &[u64]) {
        let stride = self.above + self.words;
        self.bits[usize::from(output) * stride..][..stride].split_at(self.above)
    }

    pub fn set(&mut self, output: u16, input: u16) {
        let (at, word) = (usize::from(output) * (self.above + self.words), usize::from(input) / 64);
        self.bits[at + self.above + word] |= 1 << (input % 64);
        self.bits[at + word / 64] |= 1 << (word % 64);
    }

    pub fn clear(&mut self, output: u16, input: u16) {
        let (at, word) = (usize::from(output) * (self.above + self.words), usize::from(input) / 64);
        let bits = &mut self.bits[at + self.above + word];
        *bits &= !(1 << (input % 64));
        if *bits == 0 {
            self.bits[at + word / 64] &= !(1 << (word % 64));
        }
    }

    pub fn is_set(&self, output: u16, input: usize) -> bool {
        self.of(output).1[input / 64] & 1 << (input % 64) != 0
    }

    /// Returns the first set bit at or after `from`, wrapping around to bit 0.
    pub fn next(&self, output: u16, from: usize) -> Option<usize> {
        let (above, words) = self.of(output);
        let word = from / 64;
        if let Some(&bits) = words.get(word)
            && bits & (!0 << (from % 64)) != 0
        {
            return Some(word * 64 + (bits & (!0 << (from % 64))).trailing_zeros() as usize);
        }
        let word = first_from(above, word + 1).or_else(|| first_from(above, 0))?;
        Some(word * 64 + words[word].trailing_zeros() as usize)
    }

    /// Iterates over the set bits, from the lowest one.
    pub fn iter(&self, output: u16) -> impl Iterator<Item = usize> + '_ {
        let (above, words) = self.of(output);
        bits(above).flat_map(move |word| bits(&words[word..=word]).map(move |bit| word * 64 + bit))
    }
}

/// Returns the first set bit at or after `from`.
#[inline]
fn first_from(words: &[u64], from: usize) -> Option<usize> {
    let mut keep = !0 << (from % 64);
    for (number, word) in words.iter().enumerate().skip(from / 64) {
        if word & keep != 0 {
            return Some(number * 64 + (word & keep).trailing_zeros() as usize);
        }
        keep = !0;
    }
    None
}

/// Iterates over the set bits, from the lowest one.
#[inline]
fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(number, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| number * 64 + word.trailing_zeros() as usize);
            word &= word.wrapping_sub(1);
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_next_bit_is_that_of_a_sorted_set(
            inputs in prop::sample::select(vec![1usize, 17, 64, 65, 4_096, 9_000]),
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..100),
            from in any::<prop::sample::Index>(),
        ) {
            let (mut masks, mut model) = (Masks::new(2, inputs), BTreeSet::new());
            for (set, input) in steps {
                let input = input.index(inputs);
                if set {
                    masks.set(1, input as u16);
                    model.insert(input);
                } else {
                    masks.clear(1, input as u16);
                    model.remove(&input);
                }
                let from = from.index(inputs + 1);
                let expected = model.range(from..).next().or(model.first()).copied();
                prop_assert_eq!(masks.next(1, from), expected);
                prop_assert!(masks.is_set(1, input) == set && masks.next(0, from).is_none());
            }
            prop_assert_eq!(masks.iter(1).collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
