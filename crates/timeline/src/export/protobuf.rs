//! The little of protobuf's wire format that a trace for Perfetto needs
//! (<https://protobuf.dev/programming-guides/encoding/>).

/// Bytes of one message, field by field.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A field of type `uint32`, `uint64`, `bool`, an enumeration, or an `int64` that is not
    /// negative.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `string`.
    pub fn text(&mut self, field: u32, text: &str) {
        self.block(field, text.as_bytes());
    }

    /// A field that is a message.
    pub fn message(&mut self, field: u32, message: &Message) {
        self.block(field, &message.0);
    }

    /// A field that is a message, made by `fill`.
    pub fn with(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut message = Message::default();
        fill(&mut message);
        self.message(field, &message);
    }

    fn block(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_format_are_encoded_as_it_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.with(3, |inner| inner.number(1, 150));
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.bytes(), expected);
        message.clear();
        message.fixed64(48, 1);
        message.number(1, u64::MAX);
        let expected = b"\x81\x03\x01\0\0\0\0\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(message.bytes(), expected);
    }
}
