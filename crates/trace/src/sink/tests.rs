use super::*;
use crate::Trace;

fn sink() -> (TraceSink, TraceBuffer) {
    let buffer = TraceBuffer::default();
    let header = Header::new("kernel", 0, "rm", Vec::new(), Limits::default());
    (TraceSink::new(buffer.clone(), header), buffer)
}

fn some(times: std::ops::Range<u64>) -> Vec<Record> {
    times.map(|time| Record { time, kind: 12, ..Record::default() }).collect()
}

fn read(buffer: &TraceBuffer) -> Result<Trace, TraceError> {
    Trace::read(&mut &buffer.bytes()[..])
}

#[test]
fn all_records_are_there_in_order_with_the_limits_of_the_dispatcher() {
    let (sink, buffer) = sink();
    sink.records(&some(90..91));
    sink.begin(Limits { jobs: 11, ..Limits::default() });
    sink.records(&some(0..3));
    sink.clone().records(&some(3..5));
    assert_eq!(sink.finish().expect("memory"), 0);
    let trace = read(&buffer).expect("it is whole");
    assert_eq!((trace.header.limits.jobs, trace.records), (11, some(0..5)));
}

#[test]
fn a_gap_stands_where_it_was_and_is_counted() {
    let (sink, buffer) = sink();
    sink.begin(Limits::default());
    sink.records(&some(0..2));
    sink.lost(0);
    sink.lost(10);
    sink.records(&some(12..13));
    sink.lost(7);
    assert_eq!(sink.finish().expect("memory"), 17);
    let trace = read(&buffer).expect("it is whole");
    let lost: Vec<u64> = trace.records.iter().filter_map(Record::lost_before).collect();
    assert_eq!((lost, trace.lost(), trace.records.len()), (vec![10, 7], 17, 5));
    assert_eq!(trace.records[2].lost_before(), Some(10));
}

#[test]
fn what_was_flushed_can_be_read_without_the_end() {
    let (sink, buffer) = sink();
    sink.begin(Limits::default());
    sink.records(&some(0..2));
    sink.flush();
    sink.records(&some(2..3));
    // As after SIGKILL: the sink's buffer never comes to the file.
    let bytes = buffer.bytes();
    let mut reader = crate::TraceReader::new(&bytes[..]).expect("the header is whole");
    let records: Vec<Record> = reader.by_ref().map_while(Result::ok).collect();
    assert_eq!(records, some(0..2));
    assert!(matches!(read(&buffer), Err(TraceError::Short { number: 2 })));
}

/// Takes so many bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_without_room_is_reported_at_the_end() {
    let header = Header::new("kernel", 0, "rm", Vec::new(), Limits::default());
    let sink = TraceSink::new(Small(10_000), header);
    sink.begin(Limits::default());
    (0..100).for_each(|n| sink.records(&some(10 * n..10 * (n + 1))));
    sink.flush();
    assert!(
        matches!(sink.finish(), Err(TraceError::Io(e)) if e.kind() == io::ErrorKind::StorageFull)
    );
}

#[test]
fn a_run_that_never_began_leaves_nothing() {
    let (sink, buffer) = sink();
    assert_eq!(sink.finish().expect("nothing is written"), 0);
    assert!(buffer.bytes().is_empty());
}
