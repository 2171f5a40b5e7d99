// Arrays out of the page: base64 of deflated bytes.

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };

/** What was deflated, from base64 of it, as a response that can be read as bytes or text. */
function inflate(data) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
}

/** A typed array. Its bytes came shuffled: the first byte of every number, then the second ... */
async function unpack({ dtype, data }) {
  const shuffled = new Uint8Array(await inflate(data).arrayBuffer());
  const size = TYPES[dtype].BYTES_PER_ELEMENT;
  if (size === 1) return new TYPES[dtype](shuffled.buffer);
  const bytes = new Uint8Array(shuffled.length);
  const n = shuffled.length / size;
  for (let part = 0, from = 0; part < size; part++) {
    for (let to = part; from < n * (part + 1); from++, to += size) bytes[to] = shuffled[from];
  }
  return new TYPES[dtype](bytes.buffer);
}

async function unpackAll(packed) {
  const names = Object.keys(packed);
  const arrays = await Promise.all(names.map((name) => unpack(packed[name])));
  return Object.fromEntries(names.map((name, i) => [name, arrays[i]]));
}
