// session.js HOST PORT [USER PASSWORD]: a session of the npm client nacos-config, told call by call.
// What is printed depends on the meaning of the answers only. The last line is `done`.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const { NacosConfigClient } = require('nacos-config');

const [host, port, username, password] = process.argv.slice(2);
const cacheDir = fs.mkdtempSync(path.join(os.tmpdir(), 'nacos-session-'));
const GROUP = 'session';

function show(name, value) {
  console.log(`${name}: ${value}`);
}

async function session() {
  const client = new NacosConfigClient({
    serverAddr: `${host}:${port}`, cacheDir, requestTimeout: 10000, username, password,
  });
  client.on('error', error => show('error', error.message));
  await client.ready();

  show('absent', await client.getConfig('a.b:c-d_e', GROUP));
  show('publish', await client.publishSingle('a.b:c-d_e', GROUP, 'one = 1 & ümlaut + 100 %'));
  show('get', await client.getConfig('a.b:c-d_e', GROUP));

  // Each content that the listener is told, until it has been told the second one.
  await new Promise(resolve => {
    client.subscribe({ dataId: 'a.b:c-d_e', group: GROUP }, content => {
      show('told', content);
      if (content === 'two') return resolve();
      client.publishSingle('a.b:c-d_e', GROUP, 'two').catch(error => show('error', error.message));
    });
  });
  client.unSubscribe({ dataId: 'a.b:c-d_e', group: GROUP });

  show('remove', await client.remove('a.b:c-d_e', GROUP));
  show('absent', await client.getConfig('a.b:c-d_e', GROUP));
  client.close();
}

session().then(() => show('end', 'done'), error => {
  show('failed', error.stack);
  process.exitCode = 1;
}).finally(() => {
  fs.rmSync(cacheDir, { recursive: true, force: true });
  process.exit();  // A long poll may still be open.
});
