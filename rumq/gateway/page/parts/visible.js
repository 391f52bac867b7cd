// Hostile text made visible: control characters as pictures, characters that turn or hide text as escapes.

// C0 and DEL have pictures of their own (U+2400); C1, zero-width, bidirectional and lone surrogates become \uXXXX.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const HIDDEN =
  /[\u0080-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffc\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const picture = (c) => (c === "\x7f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0)));
const escape = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");

/** The text with nothing in it that a reader cannot see; line ends and tabs stay. */
export function visible(text) {
  return String(text).replace(/\r\n/g, "\n").replace(CONTROL, picture).replace(HIDDEN, escape);
}

/** The same on one line, cut after `charsMax` characters. */
export function visibleLine(text, charsMax = 200) {
  const whole = String(text);
  const cut = whole.length > charsMax ? whole.slice(0, charsMax) + "…" : whole;
  return visible(cut).replace(/\t/g, "\u2409").replace(/\n/g, "\u240a");
}
