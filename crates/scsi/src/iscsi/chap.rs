//! CHAP: each side proves knowledge of a secret (RFC 7143, section 12.1; RFC 1994).

use md5::{Digest, Md5};
use sanloom_wire::iscsi::text;
use sha1::Sha1;
use sha2::Sha256;
use std::fmt;

/// CHAP name and secret of one party.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Value of CHAP_N.
    pub name: String,
    /// Shared secret. RFC 7143 requires at least 96 bits without IPsec. `Debug` never prints it.
    pub secret: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Hash function of a response (IANA, iSCSI CHAP algorithms).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// Algorithm 5, which every implementation supports.
    Md5,
    /// Algorithm 6.
    Sha1,
    /// Algorithm 7.
    Sha256,
}

impl Algorithm {
    /// All algorithms, the strongest first.
    pub const ALL: [Algorithm; 3] = [Algorithm::Sha256, Algorithm::Sha1, Algorithm::Md5];

    /// Value of CHAP_A.
    pub const fn number(self) -> u32 {
        match self {
            Algorithm::Md5 => 5,
            Algorithm::Sha1 => 6,
            Algorithm::Sha256 => 7,
        }
    }

    /// Returns the first algorithm in the peer's comma-separated list that is supported here.
    pub fn choose(list: &str) -> Option<Algorithm> {
        let known = |word: &str| {
            let number = text::number(word)?;
            Algorithm::ALL.into_iter().find(|algorithm| algorithm.number() == number)
        };
        list.split(',').find_map(known)
    }

    /// Computes the value of CHAP_R.
    pub fn response(self, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
            D::new().chain_update([id]).chain_update(secret).chain_update(challenge).finalize().to_vec()
        }
        match self {
            Algorithm::Md5 => hash::<Md5>(id, secret, challenge),
            Algorithm::Sha1 => hash::<Sha1>(id, secret, challenge),
            Algorithm::Sha256 => hash::<Sha256>(id, secret, challenge),
        }
    }
}

/// Challenge that one side has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// Algorithm chosen by CHAP_A.
    pub algorithm: Algorithm,
    /// Identifier from CHAP_I.
    pub id: u8,
    /// Challenge bytes from CHAP_C.
    pub bytes: Vec<u8>,
}

impl Challenge {
    /// Returns whether the response is right. The comparison takes the same time wherever the bytes
    /// differ.
    pub fn accepts(&self, secret: &[u8], response: &[u8]) -> bool {
        let expected = self.algorithm.response(self.id, secret, &self.bytes);
        let differs = expected.iter().zip(response).fold(0, |all, (a, b)| all | (a ^ b));
        expected.len() == response.len() && differs == 0
    }

    /// Computes the response to this challenge with a secret.
    pub fn answer(&self, secret: &[u8]) -> Vec<u8> {
        self.algorithm.response(self.id, secret, &self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MD5 of 01, "secret", 02 03; the expected value was computed with another program.
    #[test]
    fn responses_are_hashes_of_id_secret_and_challenge() {
        let hex = |bytes: Vec<u8>| text::to_binary(&bytes);
        assert_eq!(hex(Algorithm::Md5.response(1, b"secret", &[2, 3])), MD5);
        assert_eq!(hex(Algorithm::Sha1.response(1, b"secret", &[2, 3])), SHA1);
        assert_eq!(hex(Algorithm::Sha256.response(1, b"secret", &[2, 3])), SHA256);
    }

    const MD5: &str = "0xf506c24f35d1c70e450edb8fdf933478";
    const SHA1: &str = "0xc89c16e4dae017f9f96fb7e0b771ae92805b9b3f";
    const SHA256: &str = "0x0139bffdf152606a2cbffc12059829afee1ca9ddf6a682afd2c3d9c5572c387b";

    #[test]
    fn only_the_right_secret_is_accepted() {
        let challenge = Challenge { algorithm: Algorithm::Md5, id: 9, bytes: vec![7; 16] };
        let response = challenge.answer(b"a secret of 16 b");
        assert!(challenge.accepts(b"a secret of 16 b", &response));
        assert!(!challenge.accepts(b"another secret.", &response));
        assert!(!challenge.accepts(b"a secret of 16 b", &response[1..]));
        assert!(!challenge.accepts(b"a secret of 16 b", &[]));
    }

    #[test]
    fn the_first_known_algorithm_is_chosen() {
        assert_eq!(Algorithm::choose("9,7,5"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::choose("5"), Some(Algorithm::Md5));
        assert_eq!(Algorithm::choose("8,x"), None);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let credentials = Credentials { name: "host".into(), secret: b"hush".to_vec() };
        assert_eq!(format!("{credentials:?}"), "Credentials { name: \"host\", .. }");
    }
}
