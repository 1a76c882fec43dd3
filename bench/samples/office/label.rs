//! The packed label: what a parcel's square code says, in sixteen bytes.
//!
//! Bits from the top: version 4, depot 10, number 20, weight in 50 g steps 10,
//! kind 3, flags 5, postcode 17, reserved 43, checksum 16.

use std::fmt;
use std::str::FromStr;

const VERSION: u128 = 3;
const POLYNOMIAL: u16 = 0x8d95;
const WEIGHT_STEP_G: u32 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Letter,
    Packet,
    Parcel,
    Bulky,
}

impl Kind {
    fn code(self) -> u128 {
        match self {
            Kind::Letter => 0,
            Kind::Packet => 1,
            Kind::Parcel => 2,
            Kind::Bulky => 5,
        }
    }

    fn from_code(code: u128) -> Result<Self, LabelError> {
        match code {
            0 => Ok(Kind::Letter),
            1 => Ok(Kind::Packet),
            2 => Ok(Kind::Parcel),
            5 => Ok(Kind::Bulky),
            other => Err(LabelError::UnknownKind(other as u8)),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Kind::Letter => "letter",
            Kind::Packet => "packet",
            Kind::Parcel => "parcel",
            Kind::Bulky => "bulky",
        };
        f.write_str(name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelError {
    BadDepot(String),
    BadNumber(u32),
    BadPostcode(u32),
    TooHeavy(u32),
    UnknownKind(u8),
    UnknownVersion(u8),
    Checksum { expected: u16, found: u16 },
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::BadDepot(text) => write!(f, "depot {text:?} is not two letters"),
            LabelError::BadNumber(number) => write!(f, "number {number} is too large"),
            LabelError::BadPostcode(code) => write!(f, "postcode {code} is too large"),
            LabelError::TooHeavy(grams) => write!(f, "{grams} g do not fit on a label"),
            LabelError::UnknownKind(code) => write!(f, "kind {code} is unknown"),
            LabelError::UnknownVersion(version) => write!(f, "version {version} is unknown"),
            LabelError::Checksum { expected, found } => {
                write!(f, "checksum is {found:04x}, expected {expected:04x}")
            }
        }
    }
}

impl std::error::Error for LabelError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depot([u8; 2]);

impl Depot {
    fn code(self) -> u128 {
        let [first, second] = self.0;
        u128::from(first - b'A') * 26 + u128::from(second - b'A')
    }

    fn from_code(code: u128) -> Self {
        let first = b'A' + (code / 26) as u8;
        let second = b'A' + (code % 26) as u8;
        Depot([first, second])
    }
}

impl FromStr for Depot {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.as_bytes() {
            [first, second] if first.is_ascii_uppercase() && second.is_ascii_uppercase() => {
                Ok(Depot([*first, *second]))
            }
            _ => Err(LabelError::BadDepot(text.to_owned())),
        }
    }
}

impl fmt::Display for Depot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0[0] as char, self.0[1] as char)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    depot: Depot,
    number: u32,
    weight_g: u32,
    kind: Kind,
    is_express: bool,
    is_fragile: bool,
    postcode: u32,
}

impl Label {
    pub fn new(depot: Depot, number: u32, weight_g: u32, kind: Kind) -> Result<Self, LabelError> {
        if number >= 1 << 20 {
            return Err(LabelError::BadNumber(number));
        }
        if weight_g.div_ceil(WEIGHT_STEP_G) >= 1 << 10 {
            return Err(LabelError::TooHeavy(weight_g));
        }
        Ok(Label {
            depot,
            number,
            weight_g,
            kind,
            is_express: false,
            is_fragile: false,
            postcode: 0,
        })
    }

    pub fn express(mut self) -> Self {
        self.is_express = true;
        self
    }

    pub fn fragile(mut self) -> Self {
        self.is_fragile = true;
        self
    }

    pub fn to(mut self, postcode: u32) -> Result<Self, LabelError> {
        if postcode > 99_999 {
            return Err(LabelError::BadPostcode(postcode));
        }
        self.postcode = postcode;
        Ok(self)
    }

    pub fn pack(&self) -> [u8; 16] {
        let steps = u128::from(self.weight_g.div_ceil(WEIGHT_STEP_G));
        let flags = u128::from(self.is_express) | u128::from(self.is_fragile) << 1;
        let mut bits = VERSION << 124;
        bits |= self.depot.code() << 114;
        bits |= u128::from(self.number) << 94;
        bits |= steps << 84;
        bits |= self.kind.code() << 81;
        bits |= flags << 76;
        bits |= u128::from(self.postcode) << 59;
        let mut bytes = bits.to_be_bytes();
        let sum = checksum(&bytes[..14]);
        bytes[14..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    pub fn unpack(bytes: &[u8; 16]) -> Result<Self, LabelError> {
        let expected = checksum(&bytes[..14]);
        let found = u16::from_be_bytes([bytes[14], bytes[15]]);
        if found != expected {
            return Err(LabelError::Checksum { expected, found });
        }
        let bits = u128::from_be_bytes(*bytes);
        let field = |shift: u32, width: u32| (bits >> shift) & ((1 << width) - 1);
        let version = field(124, 4);
        if version != VERSION {
            return Err(LabelError::UnknownVersion(version as u8));
        }
        let flags = field(76, 5);
        Ok(Label {
            depot: Depot::from_code(field(114, 10)),
            number: field(94, 20) as u32,
            weight_g: field(84, 10) as u32 * WEIGHT_STEP_G,
            kind: Kind::from_code(field(81, 3))?,
            is_express: flags & 1 != 0,
            is_fragile: flags & 2 != 0,
            postcode: field(59, 17) as u32,
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:06} {} {} g", self.depot, self.number, self.kind, self.weight_g)?;
        if self.postcode != 0 {
            write!(f, " to {:05}", self.postcode)?;
        }
        if self.is_express {
            f.write_str(" express")?;
        }
        Ok(())
    }
}

/// A cyclic redundancy check that catches every burst of up to sixteen bits.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0xffff_u16;
    for &byte in bytes {
        sum ^= u16::from(byte) << 8;
        for _ in 0..8 {
            sum = if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ POLYNOMIAL };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        Label::new("HH".parse().unwrap(), 4_711, 1_200, Kind::Parcel).unwrap()
    }

    #[test]
    fn a_packed_label_comes_back() {
        let label = label().express().to(20_095).unwrap();
        assert_eq!(Label::unpack(&label.pack()), Ok(label));
    }

    #[test]
    fn a_changed_bit_is_found() {
        let mut bytes = label().pack();
        bytes[5] ^= 0x10;
        assert!(matches!(Label::unpack(&bytes), Err(LabelError::Checksum { .. })));
    }
}
