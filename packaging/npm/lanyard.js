#!/usr/bin/env node
// Starts the program of the platform package. Signals go to it, and its exit code is this one's.
'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');
const { isatty } = require('node:tty');

const platform = `${process.platform}-${process.arch}`;
const { optionalDependencies } = require('../package.json');
const name = Object.keys(optionalDependencies).find((key) => key.endsWith(`/${platform}`));

function fail(code, what, advice) {
  process.stderr.write(`error: ${what} [${code}]\n  try: ${advice}\n`);
  process.exit(1);
}

if (!name) {
  fail('platform_unsupported', `there is no package of Lanyard for ${platform}`, 'build it from source');
}

let program;
try {
  program = path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', 'lanyard');
} catch {
  fail('platform_package_missing', `${name} is not installed`, 'install again without `--omit=optional`');
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });

// A terminal sends its signals to this process and to the program; sent on, they would arrive twice. `process.stdin` is not
// touched: it would make a pipe non-blocking for the program too, which then reads nothing.
const fromTerminal = isatty(0) ? ['SIGINT', 'SIGQUIT'] : [];
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    if (!fromTerminal.includes(signal)) child.kill(signal);
  });
}

child.on('error', (error) => fail('program_unusable', `cannot start ${program}: ${error.message}`, 'install Lanyard again'));
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Ended by a signal: end in the same way, for callers that look.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // A signal whose default action does not end a process.
  setTimeout(() => process.exit(1), 1000);
});
