// Values as codes: categories by position, numbers by how many thresholds are <= them (encode_numpy.py).

/** How many of levels[first ... last - 1], which are sorted, are <= value. */
function countUpTo(levels, first, last, value) {
  let low = first;
  let high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (levels[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - first;
}

/** How the values of inputs become codes. */
class Codes {
  constructor(header, arrays) {
    Object.assign(this, arrays);
    this.header = header;
  }

  /** A number as the model compares it: in its own precision, NaN where it counts as missing. */
  clean(value, input) {
    const { single, missing_value: missing, zero_band: band } = this.header;
    const number = single ? Math.fround(value) : value;
    if (missing !== null && number === (single ? Math.fround(missing) : missing)) return NaN;
    return this.zero_as_missing[input] && Math.abs(number) <= band ? NaN : number;
  }

  /** The code of an input's value: categories by position, numbers by how many thresholds are <= them. */
  code(value, input) {
    const first = this.level_start[input];
    const last = this.level_start[input + 1];
    const number = this.clean(value, input);
    if (Number.isNaN(number)) return last - first + 1;
    if (!this.categorical[input]) return countUpTo(this.levels, first, last, number);
    const whole = Math.trunc(number);
    const upTo = countUpTo(this.levels, first, last, whole);
    return upTo > 0 && this.levels[first + upTo - 1] === whole ? upTo - 1 : last - first;
  }
}
