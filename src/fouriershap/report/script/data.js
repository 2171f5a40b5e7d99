// Arrays out of the page: base64 of deflated bytes.

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };

/** A typed array from base64 of deflated bytes. */
async function unpack({ dtype, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new TYPES[dtype](await new Response(stream).arrayBuffer());
}

async function unpackAll(packed) {
  const names = Object.keys(packed);
  const arrays = await Promise.all(names.map((name) => unpack(packed[name])));
  return Object.fromEntries(names.map((name, i) => [name, arrays[i]]));
}
