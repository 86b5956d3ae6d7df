// Every page works without this: values under the pointer or by arrow keys, and choices that submit
// themselves.
for (const figure of document.querySelectorAll('[data-points]')) {
  const points = JSON.parse(figure.dataset.points);
  const days = figure.dataset.days && JSON.parse(figure.dataset.days);
  const label = figure.querySelector('.said');
  const link = figure.querySelector('a.time');
  const plot = figure.querySelector('.plot');
  const graph = figure.querySelector('.graph');
  const cursor = document.createElement('div');
  cursor.className = 'cursor';
  cursor.hidden = true;
  figure.append(cursor);
  figure.querySelector('.readout').hidden = false;
  const hint = link ? 'Click a point, or drag over several, to see the pages of that time.' : '';
  let at = points.length;
  // Where a drag or a selection by keyboard began.
  let from;
  const hide = () => {
    cursor.hidden = true;
    if (link) link.hidden = true;
    label.textContent = hint;
    from = undefined;
  };
  const show = (index) => {
    at = Math.max(0, Math.min(points.length - 1, index));
    const [first, last] = from === undefined ? [at, at] : [Math.min(from, at), Math.max(from, at)];
    const { left, width } = graph.getBoundingClientRect();
    const step = width / points.length;
    cursor.style.left = `${left - figure.getBoundingClientRect().left + (first === last ? at + 0.5 : first) * step}px`;
    cursor.style.width = first === last ? '1px' : `${(last - first + 1) * step}px`;
    cursor.classList.toggle('range', first !== last);
    cursor.hidden = false;
    label.textContent =
      first === last ? points[at].join(' · ') : `From ${points[first][0]} to ${points[last][0]}`;
    if (!link) return;
    const address = new URL(figure.dataset.time, location.href);
    address.searchParams.set('from', days[first][0]);
    address.searchParams.set('to', days[last][1]);
    link.href = address.href;
    link.hidden = false;
  };
  const indexAt = ({ clientX }) => {
    const { left, width } = graph.getBoundingClientRect();
    return Math.floor(((clientX - left) / width) * points.length);
  };
  let isDown = false;
  plot.addEventListener('pointermove', (event) => {
    if (indexAt(event) < 0 && !isDown) hide();
    else show(indexAt(event));
  });
  plot.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    from = undefined;
    show(indexAt(event));
    from = at;
    isDown = true;
    if (event.pointerType !== 'touch') plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener('pointerup', ({ pointerType }) => {
    // After a tap, the values stay, with a link.
    if (isDown && link && pointerType !== 'touch') link.click();
    isDown = false;
    if (pointerType !== 'touch') from = undefined;
  });
  plot.addEventListener('pointercancel', () => {
    isDown = false;
  });
  plot.addEventListener('pointerleave', ({ pointerType }) => pointerType === 'touch' || isDown || hide());
  figure.addEventListener('focusout', ({ relatedTarget }) => figure.contains(relatedTarget) || hide());
  figure.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (event.key === 'Escape') hide();
    if (event.key === 'Enter' && event.target === figure && link && !link.hidden) link.click();
    if (step === undefined) return;
    event.preventDefault();
    if (!event.shiftKey) from = undefined;
    else from ??= Math.min(at, points.length - 1);
    show(at + step);
  });
  hide();
}
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// Reloads the page while an action waits for the database, unless someone is typing. Only once, and not
// after a link was followed or a form sent: a reload would cancel that if it takes long.
const again = document.querySelector('[data-reloads]');
let timer;
const reload = () => {
  if (document.querySelector('textarea:focus, details[open] textarea')) timer = setTimeout(reload, 2500);
  else location.replace(again.href);
};
if (again) timer = setTimeout(reload, 2500);
addEventListener('beforeunload', () => clearTimeout(timer));
// Names that start like the word before the cursor: those of the dictionary on this page, and keywords.
const editor = document.querySelector('[data-completes]');
if (editor) {
  const names = [...document.querySelectorAll('.dictionary code')].map(({ textContent }) => textContent);
  const known = [...new Set([...names, ...editor.dataset.completes.split(' ')])];
  const working = document.querySelector('.working');
  editor.form.addEventListener('submit', () => {
    working.hidden = false;
  });
  working.querySelector('button').addEventListener('click', () => {
    window.stop();
    working.hidden = true;
  });
  window.addEventListener('pageshow', () => {
    working.hidden = true;
  });
  // Saves what the editor shows, whether or not it was run.
  const saves = document.querySelector('form.saves');
  saves?.addEventListener('submit', () => {
    saves.elements.sql.value = editor.value;
  });
  const list = document.querySelector('.suggestions');
  const close = () => {
    list.hidden = true;
  };
  const take = (start, text) => {
    const end = editor.selectionStart;
    editor.setRangeText(text, start, end, 'end');
    close();
    editor.focus();
  };
  const suggest = () => {
    const before = editor.value.slice(0, editor.selectionStart);
    const word = /\w*$/.exec(before)[0].toLowerCase();
    const found = word === '' ? [] : known.filter((name) => name.toLowerCase().startsWith(word)).slice(0, 8);
    list.replaceChildren(
      ...found.map((name) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = name;
        button.onclick = () => take(before.length - word.length, name.replace(/\(.*/, '('));
        const item = document.createElement('li');
        item.append(button);
        return item;
      }),
    );
    list.hidden = found.length === 0;
  };
  editor.addEventListener('input', suggest);
  editor.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) editor.form.requestSubmit();
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      suggest();
    }
    if (event.key === 'ArrowDown' && !list.hidden) {
      event.preventDefault();
      list.querySelector('button').focus();
    }
  });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') {
      close();
      editor.focus();
    }
    if (step === undefined) return;
    event.preventDefault();
    const all = [...list.querySelectorAll('button')];
    (all[all.indexOf(document.activeElement) + step] ?? editor).focus();
  });
}
