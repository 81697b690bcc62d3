// Keeps a page up to date. Without it a page shows how things stood when it was loaded.
(() => {
  'use strict';
  const body = document.body;
  let ahead = Number(body.dataset.now) - Date.now(); // of the Redis server's clock

  const pad = (n) => String(n).padStart(2, '0');
  const span = (ms) => {
    const s = Math.floor(Math.max(0, ms) / 1000);
    if (s < 60) return s + 's';
    if (s < 3600) return Math.floor(s / 60) + 'm' + pad(s % 60) + 's';
    if (s < 172800) return Math.floor(s / 3600) + 'h' + pad(Math.floor(s / 60) % 60) + 'm';
    return Math.floor(s / 86400) + 'd' + pad(Math.floor(s / 3600) % 24) + 'h';
  };
  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const tick = () => {
    const now = Date.now() + ahead;
    for (const e of document.querySelectorAll('time[data-age]')) say(e, span(now - e.dataset.age));
    for (const e of document.querySelectorAll('time[data-read]')) say(e, span(now - e.dataset.read));
    for (const e of document.querySelectorAll('time[data-left]')) {
      say(e, span(e.dataset.left - now));
      e.closest('tr, dl')?.classList.toggle('out', now > e.dataset.left); // nobody knows whether it was renewed
    }
    stand();
  };

  // move keeps the focus, where the browser can.
  const move = (parent, child, before) => {
    if (parent.moveBefore) { parent.moveBefore(child, before); return; }
    const focus = child.contains(document.activeElement) ? document.activeElement : null;
    parent.insertBefore(child, before);
    if (focus) focus.focus({ preventScroll: true });
  };

  // morph makes an element like another one, and keeps what is the same: the focus and a selection stay.
  const morph = (to, from) => {
    for (const { name, value } of [...from.attributes]) if (to.getAttribute(name) !== value) to.setAttribute(name, value);
    for (const { name } of [...to.attributes]) if (!from.hasAttribute(name) && name !== 'open') to.removeAttribute(name);
    // What is not wanted any more goes first: what stays in its order is then never moved, and a move loses the focus.
    const wanted = new Set([...from.children].map((e) => e.id).filter(Boolean));
    for (const e of [...to.children]) if (e.id && !wanted.has(e.id)) e.remove();
    let at = to.firstChild;
    for (const want of [...from.childNodes]) {
      let have = at;
      if (want.id) {
        have = [...to.children].find((e) => e.id === want.id) || null;
        if (have && have !== at) {
          while (at && at !== have && !at.id) { const next = at.nextSibling; at.remove(); at = next; }
          if (have !== at) move(to, have, at);
        }
      } else if (have && have.id) {
        have = null;
      }
      if (have && have.nodeName === want.nodeName) {
        if (have.nodeType === Node.ELEMENT_NODE) morph(have, want);
        else if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
        at = have.nextSibling;
      } else {
        to.insertBefore(want, at);
        if (want.nodeName === 'TR') want.classList.add('new');
      }
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  };

  const region = ({ name, html }) => {
    const to = document.querySelector('[data-live="' + CSS.escape(name) + '"]');
    if (!to) return;
    const from = to.cloneNode(false);
    from.innerHTML = html;
    morph(to, from);
  };

  const status = document.getElementById('live');
  const show = (text, how) => {
    if (!status) return;
    say(status, text);
    status.className = 'live ' + how;
    body.classList.toggle('old', how === 'off');
  };
  let heard = null; // the last beat, while there is a stream
  let read = 0; // when what is shown was read, by this clock
  const stand = () => {
    if (!heard) return;
    const old = Date.now() - read;
    const since = 'Not read since ' + new Date(read + ahead).toISOString().slice(11, 19) + ' UTC';
    if (heard.error) show((heard.read ? since : 'Not read') + ': ' + heard.error, 'off');
    else if (heard.old && old > heard.old) show(since, 'off');
    else show('Live', 'on');
  };
  const beat = (b) => {
    heard = b;
    read = Date.now() - b.ago;
    ahead = b.now - Date.now();
    if (b.read) {
      for (const e of document.querySelectorAll('.standing time')) e.dataset.age = b.read;
      document.querySelectorAll('[data-live] time[data-read]').forEach((e, i) => { e.dataset.read = (b.reads && b.reads[i]) || b.read; });
    }
    const cycles = document.querySelector('[data-cycles]');
    if (cycles) say(cycles, b.cycles ? ' (' + b.cycles + ')' : '');
    tick();
  };

  let stream = null;
  let hiddenSince = 0;
  const others = 'BroadcastChannel' in window ? new BroadcastChannel('berth-console') : null;
  const stop = () => { heard = null; if (stream) { stream.close(); stream = null; } };
  const lost = async () => {
    let why = 'the connection has ended';
    try {
      const r = await fetch(body.dataset.events, { method: 'HEAD', cache: 'no-store' });
      if (r.status === 503) why = 'as many pages are live as may be';
      if (r.status === 403) why = 'you may not look any more';
    } catch { why = 'the console cannot be reached'; }
    if (!stream) show('Not live: ' + why + '. Reload the page to see the newest.', 'off');
    setTimeout(start, 20000);
  };
  const start = () => {
    if (stream || document.hidden || !body.dataset.events || !('EventSource' in window)) return;
    stream = new EventSource(body.dataset.events);
    if (others) others.postMessage('live');
    stream.addEventListener('region', (e) => region(JSON.parse(e.data)));
    stream.addEventListener('beat', (e) => beat(JSON.parse(e.data)));
    stream.addEventListener('error', () => {
      if (!stream) return;
      heard = null;
      if (stream.readyState === EventSource.CLOSED) { stop(); lost(); } else show('Not live: connecting again', 'off');
    });
  };
  // A browser has six connections to a server: a page that nobody sees gives its own to the next one.
  if (others) others.addEventListener('message', () => { if (document.hidden) stop(); });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { hiddenSince = Date.now(); return; }
    hiddenSince = 0;
    start();
  });
  window.addEventListener('pagehide', stop);
  document.addEventListener('keydown', (e) => {
    if (e.key !== '/' || e.ctrlKey || e.altKey || e.metaKey || e.target.closest('input, select, textarea')) return;
    e.preventDefault();
    document.getElementById('find-q').focus();
  });
  window.addEventListener('pageshow', (e) => { if (e.persisted) start(); });

  setInterval(() => {
    tick();
    if (hiddenSince && Date.now() - hiddenSince > 600000) stop();
  }, 1000);
  tick();
  start();
})();
