// Every page works without this: values under the pointer or by arrow keys, and choices that submit
// themselves.
for (const figure of document.querySelectorAll('[data-points]')) {
  const points = JSON.parse(figure.dataset.points);
  const label = figure.querySelector('.said');
  const graph = figure.querySelector('.graph');
  const cursor = document.createElement('div');
  cursor.className = 'cursor';
  cursor.hidden = true;
  figure.append(cursor);
  let at = points.length;
  const show = (index) => {
    at = Math.max(0, Math.min(points.length - 1, index));
    const plot = graph.getBoundingClientRect();
    const left = plot.left - figure.getBoundingClientRect().left + ((at + 0.5) / points.length) * plot.width;
    label.textContent = points[at].join('\n');
    label.hidden = cursor.hidden = false;
    cursor.style.left = `${left}px`;
    const isRight = at > points.length / 2;
    label.style.left = isRight ? 'auto' : `${left + 10}px`;
    label.style.right = isRight ? `${figure.clientWidth - left + 10}px` : 'auto';
  };
  const hide = () => {
    label.hidden = cursor.hidden = true;
  };
  const point = ({ clientX }) => {
    const { left, width } = graph.getBoundingClientRect();
    if (clientX < left - 8) hide();
    else show(Math.floor(((clientX - left) / width) * points.length));
  };
  figure.addEventListener('pointermove', point);
  figure.addEventListener('pointerdown', point);
  // After a tap, the values stay until the next one.
  figure.addEventListener('pointerleave', ({ pointerType }) => pointerType === 'touch' || hide());
  figure.addEventListener('blur', hide);
  figure.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (event.key === 'Escape') hide();
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
}
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// Reloads the page while an action waits for the database, unless someone is typing. Only once: another
// reload would cancel this one if it takes long.
const again = document.querySelector('[data-reloads]');
const reload = () => {
  if (document.querySelector('textarea:focus, details[open] textarea')) setTimeout(reload, 2500);
  else location.replace(again.href);
};
if (again) setTimeout(reload, 2500);
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
