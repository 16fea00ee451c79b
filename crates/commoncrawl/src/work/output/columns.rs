//! Converts a segment to Parquet, one row group at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::work::document::Document;

const SCHEMA: &str = "
    message document {
        required binary url (UTF8);
        required binary surt (UTF8);
        required binary timestamp (UTF8);
        optional binary lang (UTF8);
        required binary title (UTF8);
        required binary text (UTF8);
        required binary content_hash (UTF8);
        required group warc {
            required binary filename (UTF8);
            required int64 offset;
            required int64 length;
        }
    }";

/// Rows are written when their texts reach this size, which bounds the memory needed.
const GROUP_TEXT_BYTES: usize = 16 << 20;
/// The maximum number of rows in a group, however short they are.
const MAX_GROUP_ROWS: usize = 50_000;

/// Writes the documents of a segment to a file, and syncs it.
pub(super) fn write(mut segment: &File, path: &Path) -> io::Result<()> {
    segment.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(zstd::Decoder::new(segment)?).split(b'\n');
    let file = File::create(path)?;
    let schema = parse_message_type(SCHEMA)?;
    let level = ZstdLevel::default();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let out = BufWriter::new(file.try_clone()?);
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    loop {
        let rows = next_group(&mut lines)?;
        if rows.is_empty() {
            break;
        }
        let mut group = writer.next_row_group()?;
        write_group(&mut group, &rows)?;
        group.close()?;
    }
    writer.close()?;
    file.sync_all()
}

fn next_group(lines: &mut impl Iterator<Item = io::Result<Vec<u8>>>) -> io::Result<Vec<Document>> {
    let mut rows = Vec::new();
    let mut text_bytes = 0;
    while text_bytes < GROUP_TEXT_BYTES
        && rows.len() < MAX_GROUP_ROWS
        && let Some(line) = lines.next()
    {
        let row: Document = serde_json::from_slice(&line?).map_err(io::Error::other)?;
        text_bytes += row.text.len();
        rows.push(row);
    }
    Ok(rows)
}

fn write_group<W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Document],
) -> Result<(), ParquetError> {
    texts(group, rows, |row| &row.url)?;
    texts(group, rows, |row| &row.surt)?;
    texts(group, rows, |row| &row.timestamp)?;
    // A row without a value has the definition level 0.
    let languages: Vec<ByteArray> =
        rows.iter().filter_map(|row| row.lang.as_deref()).map(ByteArray::from).collect();
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.lang.is_some())).collect();
    column::<_, ByteArrayType>(group, &languages, Some(&levels))?;
    texts(group, rows, |row| &row.title)?;
    texts(group, rows, |row| &row.text)?;
    texts(group, rows, |row| &row.content_hash)?;
    texts(group, rows, |row| &row.warc.filename)?;
    numbers(group, rows, |row| row.warc.offset)?;
    numbers(group, rows, |row| row.warc.length)
}

fn texts<W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Document],
    field: impl Fn(&Document) -> &str,
) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = rows.iter().map(field).map(ByteArray::from).collect();
    column::<_, ByteArrayType>(group, &values, None)
}

fn numbers<W: io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Document],
    field: impl Fn(&Document) -> u64,
) -> Result<(), ParquetError> {
    let values: Vec<i64> =
        rows.iter().map(|row| i64::try_from(field(row)).unwrap_or(i64::MAX)).collect();
    column::<_, Int64Type>(group, &values, None)
}

fn column<W: io::Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has no more columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
