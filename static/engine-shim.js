// htmx 4.0.1 calls Document.parseHTMLUnsafe with two arguments; engines older than Chrome 150 (Qt WebEngine) refuse the
// second one, and then nothing swaps at all.  Tested by behaviour, so it does nothing where it is not needed.
(() => {
  const original = Document.parseHTMLUnsafe;
  if (!original) return;
  try {
    original.call(Document, "", {});
  } catch {
    Document.parseHTMLUnsafe = (html) => original.call(Document, html);
  }
})();
