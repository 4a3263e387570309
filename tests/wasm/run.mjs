// Runs the tests in Pyodide: node run.mjs PYODIDE SITE_PACKAGES PROJECT ARGUMENTS...
//
// Three folders, and arguments of pytest. Two threads have a Python each, which runs half of
// the files, and print at their end. In Pyodide the project is the folder /project.

import { writeSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const THREADS = 2;
const SECONDS = 1200;

async function runSuite([index, pyodideFolder, sitePackages, project, ...args]) {
  const { loadPyodide } = await import(pathToFileURL(resolve(pyodideFolder, "pyodide.mjs")));
  const pyodide = await loadPyodide({
    // pytest runs event loops that block, and not that of the browser.
    enableRunUntilComplete: false,
    env: { HOME: "/home/pyodide" },
    fsInit: async (FS, places) => {
      const mount = (folder, path) => {
        FS.mkdirTree(path);
        FS.mount(FS.filesystems.NODEFS, { root: resolve(folder) }, path);
      };
      mount(sitePackages, places.sitePackages);
      mount(project, "/project");
    },
  });
  const output = {
    write: (bytes) => {
      parentPort.postMessage(bytes.slice());
      return bytes.length;
    },
  };
  pyodide.setStdin({ error: true });
  pyodide.setStdout(output);
  pyodide.setStderr(output);
  pyodide.runPython("import os, sys; os.chdir('/project'); sys.path.insert(0, '/project')");
  const code = pyodide.pyimport("tests.wasm.suite").run_tests(args, index, THREADS);
  // pytest cannot await the coroutines of this loop.
  if (index === 0) await pyodide.pyimport("tests.wasm.web_loop").run_tests();
  process.exit(code);
}

function startThread(index) {
  const printed = [];
  const worker = new Worker(new URL(import.meta.url), {
    // Hypothesis recurses deeper than the stack of a browser allows.
    resourceLimits: { stackSizeMb: 64 },
    workerData: [index, ...process.argv.slice(2)],
  });
  const end = new Promise((resolve) => {
    worker.on("message", (bytes) => printed.push(bytes));
    worker.on("error", (error) => {
      // Its stack trace would have the whole source of Pyodide, in one line.
      printed.push(Buffer.from(`Pyodide failed: ${error.message}\n`));
      resolve(1);
    });
    worker.on("exit", resolve);
  });
  return { end, print: () => printed.splice(0).forEach((bytes) => writeSync(1, bytes)) };
}

if (isMainThread) {
  const threads = Array.from({ length: THREADS }, (_, index) => startThread(index));
  setTimeout(() => {
    for (const thread of threads) thread.print();
    console.error(`The tests take longer than ${SECONDS} s`);
    process.exit(1);
  }, SECONDS * 1000);
  const codes = [];
  for (const thread of threads) {
    codes.push(await thread.end);
    thread.print();
  }
  process.exit(Math.max(...codes));
} else {
  await runSuite(workerData);
}
