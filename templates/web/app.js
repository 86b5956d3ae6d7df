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
  figure.addEventListener('pointermove', ({ clientX }) => {
    const { left, width } = graph.getBoundingClientRect();
    if (clientX < left - 8) hide();
    else show(Math.floor(((clientX - left) / width) * points.length));
  });
  figure.addEventListener('pointerleave', hide);
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
// Reloads the page while an action waits for the database, unless someone is typing.
const again = document.querySelector('[data-reloads]');
if (again)
  setInterval(() => {
    if (!document.querySelector('textarea:focus, details[open] textarea')) location.replace(again.href);
  }, 2500);
// DuckDB's suggestions at the cursor.
const editor = document.querySelector('[data-completes]');
if (editor) {
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
  const suggest = async () => {
    const before = editor.value.slice(0, editor.selectionStart);
    const answer = await fetch(`/complete?sql=${encodeURIComponent(before)}`);
    const found = answer.ok ? await answer.json() : [];
    if (before !== editor.value.slice(0, editor.selectionStart)) return;
    list.replaceChildren(
      ...found.map(({ suggestion, suggestion_start: start }) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = suggestion;
        button.onclick = () => take(start, suggestion);
        const item = document.createElement('li');
        item.append(button);
        return item;
      }),
    );
    list.hidden = found.length === 0;
  };
  let soon;
  editor.addEventListener('input', () => {
    clearTimeout(soon);
    if (/[\w.]$/.test(editor.value.slice(0, editor.selectionStart))) soon = setTimeout(suggest, 150);
    else close();
  });
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
