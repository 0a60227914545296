//! The Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998).

use crate::vec::tiered;

/// Words of state.
pub(super) const N: usize = 624;
const M: usize = 397;

/// The engine: its words, and how far they are used up.
#[derive(Clone)]
pub(super) struct Mt19937 {
    state: [u32; N],
    seed: u64,
    /// One more than the words left before the next twist. A state as it was seeded has none left.
    left: usize,
    /// The next word to hand out.
    next: usize,
}

/// The state in the terms of PyTorch's serialized form.
#[derive(Clone)]
pub(super) struct RawState {
    pub(super) seed: u64,
    pub(super) left: i32,
    pub(super) next: u64,
    pub(super) state: [u32; N],
}

#[inline(always)]
fn mix(upper: u32, lower: u32) -> u32 {
    let y = (upper & 0x8000_0000) | (lower & 0x7fff_ffff);
    (y >> 1) ^ ((lower & 1).wrapping_neg() & 0x9908_b0df)
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

tiered! {
    fn twist(s: &mut [u32; N]) => A {
        let _ = std::marker::PhantomData::<A>;
        // Two loops whose distances are longer than a vector, so that they vectorize.
        for j in 0..N - M {
            s[j] = s[j + M] ^ mix(s[j], s[j + 1]);
        }
        for j in N - M..N - 1 {
            s[j] = s[j + M - N] ^ mix(s[j], s[j + 1]);
        }
        s[N - 1] = s[M - 1] ^ mix(s[N - 1], s[0]);
    }
    fn temper_all(out: &mut [u32], words: &[u32]) => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &word) in out.iter_mut().zip(words) {
            *out = temper(word);
        }
    }
}

impl Mt19937 {
    /// Starts from the low 32 bits of a seed; all of it is remembered.
    pub(super) fn new(seed: u64) -> Mt19937 {
        let mut state = [0u32; N];
        state[0] = seed as u32;
        for j in 1..N {
            let previous = state[j - 1];
            state[j] = 1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(j as u32);
        }
        Mt19937 { state, seed, left: 1, next: 0 }
    }

    /// What it was started from.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// 32 random bits.
    #[inline]
    pub(super) fn random(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            twist(&mut self.state);
            self.left = N;
            self.next = 0;
        }
        let word = self.state[self.next];
        self.next += 1;
        temper(word)
    }

    /// 64 random bits: the first word drawn is the high one.
    #[inline]
    pub(super) fn random64(&mut self) -> u64 {
        let high = self.random();
        let low = self.random();
        u64::from(high) << 32 | u64::from(low)
    }

    /// As many calls of [`random`](Self::random), at vector speed.
    pub(super) fn fill(&mut self, mut out: &mut [u32]) {
        while !out.is_empty() {
            if self.left == 1 {
                twist(&mut self.state);
                self.left = N + 1;
                self.next = 0;
            }
            let count = out.len().min(self.left - 1);
            let (now, later) = out.split_at_mut(count);
            temper_all(now, &self.state[self.next..self.next + count]);
            self.next += count;
            self.left -= count;
            out = later;
        }
    }

    /// For serialization.
    pub(super) fn to_raw(&self) -> RawState {
        RawState { seed: self.seed, left: self.left as i32, next: self.next as u64, state: self.state }
    }

    /// `None` if no sequence of draws leads to such a state.
    pub(super) fn from_raw(raw: RawState) -> Option<Mt19937> {
        let left = usize::try_from(raw.left).ok().filter(|left| (1..=N).contains(left))?;
        let next = usize::try_from(raw.next).ok().filter(|&next| next <= N)?;
        // With one left the position does not matter; otherwise it must leave that many words.
        (left == 1 || left + next == N + 1).then_some(Mt19937 {
            state: raw.state,
            seed: raw.seed,
            left,
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference output of the authors' `mt19937ar.c` for `init_genrand(5489)`.
    #[test]
    fn the_published_sequence() {
        let mut engine = Mt19937::new(5489);
        let first: Vec<u32> = (0..5).map(|_| engine.random()).collect();
        assert_eq!(first, [3499211612, 581869302, 3890346734, 3586334585, 545404204]);
        for _ in 5..9999 {
            engine.random();
        }
        assert_eq!(engine.random(), 4123659995, "the 10000th, as C++ prescribes for std::mt19937");
    }

    #[test]
    fn bulk_and_single_draws_mix() {
        let mut single = Mt19937::new(42);
        let expected: Vec<u32> = (0..5000).map(|_| single.random()).collect();
        let mut bulk = Mt19937::new(42);
        let mut got = Vec::new();
        let mut n = 1;
        while got.len() + n + 1 < 5000 {
            let mut words = vec![0; n];
            bulk.fill(&mut words);
            got.extend(words);
            got.push(bulk.random());
            n = n * 2 % 1999 + 1;
        }
        assert_eq!(got, expected[..got.len()]);
    }

    #[test]
    fn impossible_states_are_refused() {
        let good = Mt19937::new(1).to_raw();
        assert!(Mt19937::from_raw(good.clone()).is_some());
        for (left, next) in [(0, 0), (-1, 3), (625, 0), (624, 624), (2, 0), (1, 625)] {
            assert!(Mt19937::from_raw(RawState { left, next, ..good.clone() }).is_none(), "{left} {next}");
        }
    }
}
