/// Cuts the shell's output into answers: each is one JSON object whose first line ends with `{` and whose
/// last line begins with `}`. Lines between answers are nobody's.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Where the line begins that was not looked at yet.
    line: usize,
    /// Where the answer begins.
    start: Option<usize>,
}

impl Frames {
    /// Takes in what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets everything, before a new command is sent.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How much is held, in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next answer, once it is there as a whole.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(length) = self.bytes[self.line..].iter().position(|byte| *byte == b'\n') {
            let end = self.line + length;
            let line = &self.bytes[self.line..end];
            let (opens, closes) = (line.last() == Some(&b'{'), line.first() == Some(&b'}'));
            self.line = end + 1;
            match self.start {
                None if opens => self.start = Some(end - 1),
                Some(start) if closes => return Some(self.take(start, end)),
                _ => {}
            }
        }
        None
    }

    fn take(&mut self, start: usize, end: usize) -> Vec<u8> {
        let mut answer: Vec<u8> = self.bytes.drain(..=end).collect();
        (self.line, self.start) = (0, None);
        answer.split_off(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANSWER: &str = "{\n    \"log\": [\n        {\"a\":\"}\"}\n    ]\n}\n";

    fn cut(text: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::default();
        let mut answers = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            frames.push(chunk);
            answers.extend(std::iter::from_fn(|| frames.next()));
        }
        answers.into_iter().map(|answer| String::from_utf8(answer).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn answers_are_found_however_they_arrive(size in 1usize..60) {
            let text = format!("foreign\n{ANSWER}\n  more of it\n{ANSWER}{ANSWER}");
            prop_assert_eq!(cut(&text, size), [ANSWER, ANSWER, ANSWER]);
        }
    }

    #[test]
    fn a_line_without_its_end_before_an_answer_does_no_harm() {
        assert_eq!(cut(&format!("lvm> {ANSWER}"), 7), [ANSWER]);
        assert_eq!(cut("}\nno answer\n", 7), Vec::<String>::new());
    }
}
