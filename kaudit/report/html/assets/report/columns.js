// From packed columns to typed arrays: kaudit/report/html/columns.py has the encoding.

/**
 * @typedef {{name: string, encoding: string, width: number}} Field
 * @typedef {{rows: number, fields: Field[]}} PackedTable
 * @typedef {Record<string, Float64Array>} Columns
 */

const WORD_BYTES = 4; // that bit operations take
const EXACT_BYTES = 6; // of stored numbers: sums of more may pass 2**53

/**
 * Base64 of zlib to bytes.
 * @param {string} text
 * @returns {Promise<Uint8Array>}
 */
export async function inflate(text) {
  const binary = atob(text.trim());
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Tables of columns, in the order they lie in the bytes. Values are relative to the origins; beyond 2**53 they are rounded.
 * @param {Uint8Array} bytes
 * @param {Record<string, PackedTable>} tables
 * @returns {Record<string, Columns>}
 */
export function unpack(bytes, tables) {
  let at = 0;
  /** @type {Record<string, Columns>} */
  const unpacked = {};
  for (const [name, table] of Object.entries(tables)) {
    const size = table.rows * table.fields.reduce((sum, field) => sum + field.width, 0);
    if (at + size > bytes.length) throw new RangeError(`the data of this partition end within ${name}`);
    unpacked[name] = unpackTable(bytes.subarray(at, at + size), table);
    at += size;
  }
  return unpacked;
}

/** @param {Uint8Array} bytes @param {PackedTable} table @returns {Columns} */
function unpackTable(bytes, { rows, fields }) {
  const wide = fields.some((field) => field.width > EXACT_BYTES);
  /** @type {Record<string, any>} */
  const stored = {};
  let at = 0;
  for (const { name, width } of fields) {
    const planes = bytes.subarray(at, at + rows * width);
    stored[name] = wide ? wideNumbers(planes, rows, width) : numbers(planes, rows, width);
    at += rows * width;
  }
  resolve(stored, fields, rows, wide ? 1n : 1);
  return wide ? mapValues(stored, (column) => Float64Array.from(column, Number)) : stored;
}

/** Zigzag numbers of up to six bytes, stored as planes. @param {Uint8Array} planes @param {number} rows @param {number} width */
function numbers(planes, rows, width) {
  const out = new Float64Array(rows);
  if (width === 0) return out;
  if (width <= WORD_BYTES) {
    const words = new Uint32Array(rows);
    for (let plane = 0; plane < width; plane++) {
      const base = plane * rows;
      const shift = plane * 8;
      for (let i = 0; i < rows; i++) words[i] |= planes[base + i] << shift;
    }
    for (let i = 0; i < rows; i++) out[i] = (words[i] >>> 1) ^ -(words[i] & 1);
    return out;
  }
  for (let plane = width - 1; plane >= 0; plane--) {
    const base = plane * rows;
    for (let i = 0; i < rows; i++) out[i] = out[i] * 256 + planes[base + i];
  }
  for (let i = 0; i < rows; i++) out[i] = out[i] % 2 ? -(out[i] + 1) / 2 : out[i] / 2;
  return out;
}

/** The same for more bytes, wrapping around at 64 bits. @param {Uint8Array} planes @param {number} rows @param {number} width */
function wideNumbers(planes, rows, width) {
  const out = new BigInt64Array(rows);
  for (let i = 0; i < rows; i++) {
    let value = 0n;
    for (let plane = width - 1; plane >= 0; plane--) value = (value << 8n) | BigInt(planes[plane * rows + i]);
    out[i] = value & 1n ? -((value + 1n) >> 1n) : value >> 1n;
  }
  return out;
}

/**
 * Add to each stored number what was predicted for it, in place; `one` is 1 of the columns' kind of number.
 * @param {Record<string, any>} columns @param {Field[]} fields @param {number} rows @param {any} one
 */
function resolve(columns, fields, rows, one) {
  const { first_offset: first, last_offset: last } = columns;
  if (first) {
    for (let i = 0; i < rows; i++) {
      if (i) first[i] += last[i - 1];
      last[i] += first[i];
    }
  }
  for (const { name, encoding } of fields) {
    const base = { from: columns.min_timestamp, spans: columns.first_sequence }[encoding];
    if (encoding === "delta") ascend(columns[name]);
    else if (encoding === "continues") follow(columns[name], first, last, one);
    else if (encoding === "from" && name !== "last_offset") add(columns[name], base);
    else if (encoding === "spans") {
      extend(columns[name], first, last);
      if (name === "last_sequence") add(columns[name], base);
      else for (let i = 0; i < rows; i++) columns[name][i] += one;
    }
  }
}

/** @param {any} column */
function ascend(column) {
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
}

/** @param {any} column @param {any} base */
function add(column, base) {
  for (let i = 0; i < column.length; i++) column[i] += base[i];
}

/** @param {any} column @param {any} first @param {any} last */
function extend(column, first, last) {
  for (let i = 0; i < column.length; i++) column[i] += last[i] - first[i];
}

/** @param {any} column @param {any} first @param {any} last @param {any} one */
function follow(column, first, last, one) {
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1] + last[i - 1] - first[i - 1] + one;
}

/** @template T, U @param {Record<string, T>} record @param {(value: T) => U} change @returns {Record<string, U>} */
function mapValues(record, change) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
