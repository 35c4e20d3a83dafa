// Runs tagwire's own decoder: its source, uncompiled, on Pyodide, both of which stand beside this file.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = (async () => {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href, env: { TAGWIRE_PURE: "1" } });
  const archive = await fetch(new URL("./tagwire.zip", import.meta.url));
  if (!archive.ok) throw new Error(`tagwire.zip: ${archive.status}`);
  python.unpackArchive(await archive.arrayBuffer(), "zip", { extractDir: "/tagwire" });
  python.runPython("import sys; sys.path.insert(0, '/tagwire')");
  const decoding = python.pyimport("tagwire.reference.decoding");
  postMessage({ ready: JSON.parse(python.runPython("import json; from tagwire.reference import decoding; json.dumps(decoding.message_names())")) });
  return decoding;
})();

ready.catch((error) => postMessage({ broken: String(error) }));

onmessage = async ({ data }) => {
  const decoding = await ready;
  try {
    const said = decoding.decode_json(data.text, data.kind, data.message, data.version);
    postMessage({ number: data.number, found: JSON.parse(said) });
  } catch (error) {
    postMessage({ number: data.number, found: { error: String(error) } });
  }
};
