//! Counts words.
use std::collections::HashMap;

const LIMIT: usize = 10;

/// All words.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a str,
    total: usize,
}

pub enum Level {
    Low,
    High(u8),
}

impl<'a> Words<'a> {
    /// Makes one.
    #[inline]
    pub fn new(text: &'a str) -> Self {
        let total = text.split(' ').map(|w| {
            w.len()
        }).sum();
        Words { text, total }
    }

    pub(crate) async fn find<T>(
        &self,
        name: T,
    ) -> Option<usize>
    where
        T: AsRef<str>,
    {
        if name.as_ref().is_empty() {
            return None;
        }
        Some(self.total)
    }
}

pub trait Finder {
    fn find(&self) -> usize;

    fn help(&self) -> &'static str {
        r"
fn not_one() {
}
"
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts() {
        assert_eq!(1, 1);
    }
}
