// Pieces are script files beside the page that contain compressed data. A script tag loads them, without a server.

const META = JSON.parse(byId("meta").textContent);
const SEVERAL = META.runs.length > 1;

const resolvers = new Map();
const pending = new Map();

window.exhibitPiece = (name, text) => resolvers.get(name)?.(text);

function load(name) {
  return new Promise((resolve, reject) => {
    resolvers.set(name, resolve);
    const script = make("script", {
      src: `${encodeURIComponent(META.folder)}/${name}.js`,
      load: () => { script.remove(); resolvers.delete(name); reject(new Error(`${name} contains no data`)); },
      error: () => { script.remove(); reject(new Error(`${META.folder}/${name}.js is missing: keep the folder beside the page`)); },
    });
    document.head.append(script);
  });
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

function piece(name) {
  if (!pending.has(name)) pending.set(name, load(name).then(unpack));
  return pending.get(name);
}

const imageOf = (name) => `${encodeURIComponent(META.folder)}/pages/${name}`;

const caseOf = async (index) => (await piece(`c${Math.floor(index / META.cases)}`))[index % META.cases];

// the content of the pages that a case shows, by document
async function sheetsOf(found) {
  const drawn = new Set(META.documents);
  const wanted = new Set(found.sides.flatMap((side) => (side ? side.pages.map(([document]) => document) : [])));
  const sheets = new Map();
  await Promise.all([...wanted].filter((one) => drawn.has(one)).map(async (one) => sheets.set(one, await piece(`d${one}`))));
  return sheets;
}
