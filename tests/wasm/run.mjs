// Runs the tests in Pyodide: node run.mjs PYODIDE SITE_PACKAGES PROJECT ARGUMENTS...
//
// Three folders, and arguments of pytest, whose exit code this program has. In Pyodide the
// project is the folder /project.

import { writeSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const SECONDS = 900;

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), {
    // Hypothesis recurses deeper than the stack allows that a browser has.
    resourceLimits: { stackSizeMb: 64 },
    workerData: process.argv.slice(2),
  });
  worker.on("error", (error) => {
    // Its stack trace would have the whole source of Pyodide, in one line.
    console.error(`Pyodide failed: ${error.message}`);
    process.exit(1);
  });
  worker.on("exit", (code) => process.exit(code));
  setTimeout(() => {
    console.error(`The tests take longer than ${SECONDS} s`);
    process.exit(1);
  }, SECONDS * 1000);
} else {
  const [pyodideFolder, sitePackages, project, ...args] = workerData;
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
  // The files of a thread, by default, are read and written by its main thread.
  pyodide.setStdin({ error: true });
  const write = (file) => ({ write: (bytes) => writeSync(file, bytes) });
  pyodide.setStdout(write(1));
  pyodide.setStderr(write(2));
  pyodide.runPython("import os, sys; os.chdir('/project'); sys.path.insert(0, '/project')");
  const code = pyodide.pyimport("tests.wasm.suite").run_tests(args);
  // pytest cannot await the coroutines of this loop.
  await pyodide.pyimport("tests.wasm.web_loop").run_tests();
  process.exit(code);
}
